/* SPDX-License-Identifier: MIT */

/* Memory also has the newest record of each key, from which the file is rewritten. */

#include "base/record-file.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/record-text.h"
#include "base/record-writer.h"
#include "base/timer.h"

#define FILE_MAX (256U << 20) /* bytes: berth writes no larger file */
#define OLD_MAX (64U << 10)   /* bytes of old records for which the file is not rewritten */
#define CLOSE_PATIENCE (5 * USEC_PER_SEC)
#define DAMAGED ".damaged"

struct record {
    const char *key; /* stored after the text */
    size_t size;
    char text[];
};

struct buffer {
    char *data;
    size_t size, allocated;
};

struct record_file {
    char *path;
    struct record_file_handler handler;
    struct record_writer *writer;
    struct defer handover; /* hands text to the writer at the end of a turn of the loop */
    void *records;         /* tsearch(3) tree of struct record */
    size_t live;           /* bytes of these records in a file */
    size_t written;        /* bytes of the file */
    struct buffer pending; /* items put since the last handover */
    bool is_dirty;         /* something was put since the last record_file_sync(), or that failed */
    bool needs_rewrite;    /* the end of the file is unknown or damaged */
    uint64_t last, wanted, busy; /* numbers of syncs: given; not handed over; being written. 0: none */
    size_t busy_size;
    bool busy_replaces;
};

static int compare(const void *a, const void *b) {
    return strcmp(((const struct record *) a)->key, ((const struct record *) b)->key);
}

static size_t text_size(const struct record *record) {
    char head[RECORD_TEXT_HEAD_MAX];

    return record_text_format(record->key, record->text, record->size, head) + record->size;
}

/* --- the tree --- */

static struct record *find(const struct record_file *file, const char *key) {
    struct record wanted = {.key = key};
    void *const *node = tfind(&wanted, &file->records, compare);

    return node ? *node : NULL;
}

static void forget(struct record_file *file, const char *key) {
    struct record *record = find(file, key);

    if (!record)
        return;
    file->live -= text_size(record);
    (void) tdelete(record, &file->records, compare);
    free(record);
}

static int keep(struct record_file *file, const char *key, const char *text, size_t size) {
    struct record *record = malloc(sizeof(*record) + size + strlen(key) + 1);
    struct record **node;

    if (!record)
        return -ENOMEM;
    record->size = size;
    memcpy(record->text, text, size);
    record->key = memcpy(record->text + size, key, strlen(key) + 1);
    node = tsearch(record, &file->records, compare);
    if (!node) {
        free(record);
        return -ENOMEM;
    }
    if (*node != record) {
        file->live -= text_size(*node);
        free(*node);
        *node = record;
    }
    file->live += text_size(record);
    return 0;
}

/* --- writing --- */

static int buffer_reserve(struct buffer *buffer, size_t more) {
    size_t allocated = buffer->allocated > 0 ? buffer->allocated : 4096;
    char *data;

    while (allocated - buffer->size < more)
        allocated *= 2;
    if (allocated == buffer->allocated)
        return 0;
    data = realloc(buffer->data, allocated);
    if (!data)
        return -ENOMEM;
    buffer->data = data;
    buffer->allocated = allocated;
    return 0;
}

/* Adds text for which buffer_reserve() has made room. */
static void buffer_add(struct buffer *buffer, const char *text, size_t size) {
    if (buffer->data)
        memcpy(buffer->data + buffer->size, text, size);
    buffer->size += size;
}

static void add_item(struct buffer *buffer, const char *key, const char *text, size_t size) {
    char head[RECORD_TEXT_HEAD_MAX];

    buffer_add(buffer, head, record_text_format(key, text, size, head));
    if (text)
        buffer_add(buffer, text, size);
}

static void add_record(const void *node, VISIT visit, void *userdata) {
    const struct record *record = *(struct record *const *) node;

    if (visit == postorder || visit == leaf)
        add_item(userdata, record->key, record->text, record->size);
}

static int format_all(const struct record_file *file, struct buffer *ret) {
    struct buffer all = {};
    int r = buffer_reserve(&all, strlen(RECORD_TEXT_VERSION) + file->live);

    if (r < 0)
        return r;
    buffer_add(&all, RECORD_TEXT_VERSION, strlen(RECORD_TEXT_VERSION));
    twalk_r(file->records, add_record, &all);
    *ret = all;
    return 0;
}

static bool is_mostly_old(const struct record_file *file) {
    return file->written + file->pending.size > 2 * file->live + OLD_MAX;
}

static void finish(struct record_file *file, uint64_t sync, int error) {
    if (file->handler.on_synced)
        file->handler.on_synced(sync, error, file->handler.userdata);
}

/* Hands the text to the writer. False: no memory. */
static bool begin_write(struct record_file *file) {
    struct buffer text = {};

    file->busy_replaces = file->needs_rewrite || is_mostly_old(file);
    if (!file->busy_replaces) {
        text = file->pending;
        file->pending = (struct buffer){};
    } else {
        if (format_all(file, &text) < 0)
            return false;
        free(file->pending.data);
        file->pending = (struct buffer){};
    }
    file->busy = file->wanted;
    file->wanted = 0;
    file->busy_size = text.size;
    record_writer_write(file->writer, text.data, text.size, file->busy_replaces);
    return true;
}

static void note_written(struct record_file *file, int error) {
    file->needs_rewrite = error < 0;
    file->is_dirty = file->is_dirty || error < 0;
    if (error == 0)
        file->written = file->busy_size + (file->busy_replaces ? 0 : file->written);
    file->busy = 0;
}

static void hand_over(void *userdata) {
    struct record_file *file = userdata;
    uint64_t sync = file->wanted;

    if (sync == 0 || record_writer_is_busy(file->writer) || begin_write(file))
        return;
    file->wanted = 0;
    file->is_dirty = true;
    finish(file, sync, -ENOMEM);
}

static void record_file_on_written(int error, void *userdata) {
    struct record_file *file = userdata;
    uint64_t sync = file->busy;

    note_written(file, error);
    if (file->wanted > 0)
        defer_set(&file->handover);
    finish(file, sync, error);
}

int record_file_put(struct record_file *file, const char *key, const struct message_writer *record) {
    size_t size = record ? record->size : 0;
    int r;

    if (!record_key_is_valid(key) || (record && record->error < 0))
        return -EINVAL;
    if (!record && !find(file, key))
        return 0;
    r = buffer_reserve(&file->pending, RECORD_TEXT_HEAD_MAX + size);
    if (r == 0 && record)
        r = keep(file, key, record->text, size);
    if (r < 0)
        return r;
    if (!record)
        forget(file, key);
    add_item(&file->pending, key, record ? record->text : NULL, size);
    file->is_dirty = true;
    return 0;
}

uint64_t record_file_sync(struct record_file *file) {
    if (!file->is_dirty)
        return 0;
    file->is_dirty = false;
    if (file->wanted == 0)
        file->wanted = ++file->last;
    defer_set(&file->handover);
    return file->wanted;
}

/* --- reading --- */

/* Gives the file a second name; the rewritten file will take the first one. Returns 0 or an errno, positive. */
static int set_aside(struct record_file *file) {
    char *aside;
    int r;

    if (asprintf(&aside, "%s" DAMAGED, file->path) < 0)
        return ENOMEM;
    (void) unlink(aside);
    r = link(file->path, aside) < 0 ? errno : 0;
    free(aside);
    return r;
}

/* aside: what set_aside() returned. */
static void report_damage(const struct record_file *file, bool is_known, size_t lost, int aside) {
    char text[640];
    int n;

    if (is_known)
        n = snprintf(text, sizeof(text), "%.200s: skipped %zu bytes that are no records", file->path, lost);
    else
        n = snprintf(text, sizeof(text), "%.200s: not a record file of this version, starting empty", file->path);
    if (aside == 0)
        (void) snprintf(text + n, sizeof(text) - (size_t) n, "; a copy of the damaged file is %.200s" DAMAGED, file->path);
    else
        (void) snprintf(text + n, sizeof(text) - (size_t) n, "; the damaged file could not be kept as %.200s" DAMAGED ": %s",
                        file->path, strerror(aside));
    if (file->handler.on_damage)
        file->handler.on_damage(text, file->handler.userdata);
}

static int read_items(struct record_file *file, struct record_reader *reader) {
    struct message *message = malloc(sizeof(*message));
    struct record_item item;
    int r = message ? 0 : -ENOMEM;

    while (r == 0 && record_reader_next(reader, &item)) {
        if (item.is_forgotten)
            forget(file, item.key);
        else if (message_parse(message, item.record, item.size) == 0)
            r = keep(file, item.key, item.record, item.size);
        else
            reader->lost += item.size;
    }
    free(message);
    return r;
}

static int read_text(struct record_file *file, const char *text, size_t size) {
    struct record_reader reader;
    bool is_known = record_reader_init(&reader, text, size);
    int r = read_items(file, &reader);

    if (r < 0 || reader.lost == 0)
        return r;
    file->needs_rewrite = true;
    report_damage(file, is_known, reader.lost, set_aside(file));
    return 0;
}

static int read_file(struct record_file *file) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = file_read(file->path, FILE_MAX, &text, &size);

    if (r == -ENOENT || (r == 0 && size == 0)) {
        file->needs_rewrite = true;
        return 0;
    }
    if (r < 0)
        return r;
    file->written = size;
    return read_text(file, text, size);
}

struct delivery {
    const struct record_file *file;
    struct message *message;
};

static void deliver_record(const void *node, VISIT visit, void *userdata) {
    const struct record *record = *(struct record *const *) node;
    struct delivery *delivery = userdata;

    if ((visit == postorder || visit == leaf) &&
        message_parse(delivery->message, record->text, record->size) == 0)
        delivery->file->handler.on_record(record->key, delivery->message, delivery->file->handler.userdata);
}

static int deliver_records(const struct record_file *file) {
    struct delivery delivery = {.file = file, .message = malloc(sizeof(*delivery.message))};

    if (!delivery.message)
        return -ENOMEM;
    if (file->handler.on_record)
        twalk_r(file->records, deliver_record, &delivery);
    free(delivery.message);
    return 0;
}

/* --- opened and closed --- */

int record_file_open(struct record_file **ret, sd_event *event, const char *path,
                     const struct record_file_handler *handler) {
    _cleanup_(record_file_closep) struct record_file *file = calloc(1, sizeof(*file));
    int r;

    if (!file)
        return -ENOMEM;
    file->handler = *handler;
    file->path = strdup(path);
    if (!file->path)
        return -ENOMEM;
    r = read_file(file);
    if (r == 0)
        r = defer_init(&file->handover, event, SD_EVENT_PRIORITY_NORMAL, hand_over, file);
    if (r == 0)
        r = record_writer_new(&file->writer, event, path, record_file_on_written, file);
    if (r == 0)
        r = deliver_records(file);
    if (r < 0)
        return r;
    *ret = steal_pointer(&file);
    return 0;
}

/* Writes what is pending, without calls of the handler. */
static void write_rest(struct record_file *file) {
    usec_t end = usec_add(clock_monotonic(), CLOSE_PATIENCE);
    int error = 0;

    file->handler = (struct record_file_handler){};
    if (record_writer_is_busy(file->writer)) {
        if (!record_writer_wait(file->writer, CLOSE_PATIENCE, &error))
            return;
        note_written(file, error);
    }
    if (file->pending.size == 0)
        return;
    file->wanted = file->wanted > 0 ? file->wanted : ++file->last;
    if (begin_write(file))
        (void) record_writer_wait(file->writer, usec_sub(end, clock_monotonic()), &error);
}

struct record_file *record_file_close(struct record_file *file) {
    if (!file)
        return NULL;
    if (file->writer)
        write_rest(file);
    file->writer = record_writer_free(file->writer);
    defer_done(&file->handover);
    tdestroy(file->records, free);
    free(file->pending.data);
    free(file->path);
    free(file);
    return NULL;
}

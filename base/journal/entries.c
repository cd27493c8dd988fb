/* SPDX-License-Identifier: MIT */
#include "base/journal/entries.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "base/text.h"

/* The fields that are texts. */
static const struct {
    const char *field;
    size_t offset;
} texts[] = {
    {"BERTH_EVENT", offsetof(struct entry, event)},   {"BERTH_HOST", offsetof(struct entry, host)},
    {"BERTH_JOB", offsetof(struct entry, job)},       {"BERTH_RUN", offsetof(struct entry, run)},
    {"BERTH_POOLS", offsetof(struct entry, pools)},   {"BERTH_RESULT", offsetof(struct entry, result)},
    {"BERTH_REASON", offsetof(struct entry, reason)}, {"BERTH_LIMITS", offsetof(struct entry, limits)},
    {"BERTH_DUE", offsetof(struct entry, origin.due)},       {"BERTH_UNTIL", offsetof(struct entry, missed.until)},
    {"BERTH_TRIGGER", offsetof(struct entry, origin.trigger)},
    {"BERTH_FIRST_RUN", offsetof(struct entry, origin.first_run)},
    {"_BOOT_ID", offsetof(struct entry, boot)},       {"BERTH_NAMESPACE", offsetof(struct entry, namespace)},
    {"BERTH_ON_BEHALF", offsetof(struct entry, asked.on_behalf)},
};

static char **text_at(struct entry *e, size_t i) {
    return (char **) ((char *) e + texts[i].offset);
}

static void entry_done(struct entry *e) {
    for (size_t i = 0; i < ELEMENTSOF(texts); i++)
        free(*text_at(e, i));
    free(e->cursor);
    free(e->process);
}

/* The fields that are numbers. Malformed or huge ones count as missing. */
static const struct {
    const char *field;
    size_t offset; /* of 64 bits */
} numbers[] = {
    {"BERTH_TOKEN", offsetof(struct entry, token)},         {"BERTH_TICKET", offsetof(struct entry, ticket)},
    {"BERTH_CLOCK", offsetof(struct entry, clock)},         {"BERTH_SEQ", offsetof(struct entry, seq)},
    {"BERTH_UID", offsetof(struct entry, uid)},             {"BERTH_POSITION", offsetof(struct entry, position)},
    {"BERTH_WAIT_MS", offsetof(struct entry, took.wait_ms)},     {"BERTH_RUN_MS", offsetof(struct entry, took.run_ms)},
    {"BERTH_EXIT_CODE", offsetof(struct entry, exit.code)}, {"BERTH_HEAD_START_MS", offsetof(struct entry, asked.head_start_ms)},
    {"BERTH_SIGNAL", offsetof(struct entry, exit.signal)},       {"BERTH_ATTEMPT", offsetof(struct entry, origin.attempt)},
    {"BERTH_COUNT", offsetof(struct entry, missed.count)},  {"BERTH_LEAD_MS", offsetof(struct entry, took.lead_ms)},
};

struct filling { /* an entry being read */
    struct entry *entry;
    char *machine, *pid, *lease_lost;
    bool has_number[ELEMENTSOF(numbers)];
};

static bool is_field(const char *field, const char *data, size_t length) {
    return strlen(field) == length && memcmp(field, data, length) == 0; /* a name in a crafted file may have a NUL */
}

/* The first value of a repeated field counts. A journal may come from any host, and JSON and a terminal get the text. */
static int take_text(char **to, const char *value, size_t size) {
    if (*to)
        return 0;
    *to = strndup(value, size);
    if (*to && (!text_is_utf8(*to) || text_has_control(*to, true)))
        text_make_printable(*to);
    return *to ? 0 : -ENOMEM;
}

static void take_number(struct filling *f, size_t i, const char *value, size_t size) {
    char text[32];
    uint64_t number;

    if (!f->has_number[i] && size < sizeof(text)) {
        snprintf(text, sizeof(text), "%.*s", (int) size, value);
        if (number_parse(text, INT64_MAX, &number) == 0) /* fits both signs */
            memcpy((char *) f->entry + numbers[i].offset, &number, sizeof(number));
    }
    f->has_number[i] = true;
}

/* data: "FIELD=value", length: of the field's name. */
static int take_field(struct filling *f, const char *data, size_t length, size_t size) {
    char **parts[] = {&f->machine, &f->pid, &f->lease_lost};
    static const char *const part_fields[] = {"_MACHINE_ID", "_PID", "BERTH_ON_LEASE_LOST"};
    const char *value = data + length + 1;

    size -= length + 1;
    for (size_t i = 0; i < ELEMENTSOF(texts); i++)
        if (is_field(texts[i].field, data, length))
            return take_text(text_at(f->entry, i), value, size);
    for (size_t i = 0; i < ELEMENTSOF(parts); i++)
        if (is_field(part_fields[i], data, length))
            return take_text(parts[i], value, size);
    for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
        if (is_field(numbers[i].field, data, length))
            take_number(f, i, value, size);
    return 0;
}

static int set_process(const struct filling *f) {
    struct entry *e = f->entry;

    e->continues = f->lease_lost && strcmp(f->lease_lost, "continue") == 0;
    if (asprintf(&e->process, "%s/%s/%s", f->machine ? f->machine : "", e->boot ? e->boot : "", f->pid ? f->pid : "") >= 0)
        return 0;
    e->process = NULL;
    return -ENOMEM;
}

/* Reads all fields in one pass: looking each up by name takes the journal five times as long. */
static int fill(struct journal_reader *r, struct entry *e) {
    struct filling f = {.entry = e};
    const char *data;
    size_t length, size;
    int k;

    while ((k = journal_reader_field(r, &data, &length, &size)) > 0 && (k = take_field(&f, data, length, size)) == 0)
        ;
    if (k >= 0 && !e->host && !(e->host = strdup("")))
        k = -ENOMEM;
    k = k < 0 ? k : set_process(&f);
    k = k < 0 ? k : journal_reader_time(r, &e->time);
    free(f.machine);
    free(f.pid);
    free(f.lease_lost);
    return k < 0 ? k : journal_reader_cursor(r, &e->cursor);
}

static struct entry *entries_grow(struct entries *e) {
    if (!array_grow(e->items, e->n))
        return NULL;
    e->items[e->n] = (struct entry) {.took.wait_ms = -1, .took.run_ms = -1, .asked.head_start_ms = -1, .exit.code = -1, .exit.signal = -1, .uid = -1};
    return &e->items[e->n];
}

static int take_entry(struct entries *e, struct journal_reader *r) {
    struct entry *entry = entries_grow(e);
    int k;

    if (!entry)
        return -ENOMEM;
    k = fill(r, entry);
    if (k < 0 || !entry->event) /* berthd's plain log lines have no event */
        entry_done(entry);
    else
        e->n++;
    return k;
}

int entries_read(struct entries *e, struct journal_reader *r, const char *unit) {
    _cleanup_free_ char *match = NULL;
    int k;

    if (asprintf(&match, "_SYSTEMD_UNIT=%s", unit ? unit : ENTRIES_UNIT_DEFAULT) < 0) {
        match = NULL;
        return -ENOMEM;
    }
    k = journal_reader_match(r, match);
    while (k >= 0 && (k = journal_reader_next(r)) > 0)
        k = take_entry(e, r);
    return k;
}

int entries_add(struct entries *e, const struct entry *entry) {
    struct entry *to = entries_grow(e), from = *entry;
    int k = 0;

    if (!to)
        return -ENOMEM;
    *to = from;
    for (size_t i = 0; i < ELEMENTSOF(texts); i++)
        k |= text_copy(text_at(to, i), *text_at(&from, i));
    k |= text_copy(&to->cursor, from.cursor ? from.cursor : "");
    k |= text_copy(&to->process, from.process ? from.process : "");
    if (!to->host)
        k |= text_copy(&to->host, "");
    if (k < 0) {
        entry_done(to);
        return -ENOMEM;
    }
    e->n++;
    return 0;
}

void entries_done(struct entries *e) {
    for (size_t i = 0; i < e->n; i++)
        entry_done(&e->items[i]);
    free(e->items);
    *e = (struct entries) {};
}

bool entry_is_of_another(const struct entry *e) {
    return entry_is(e, "reclaimed") || entry_is(e, "host-expired") ||
           (entry_is(e, "moved") && e->uid >= 0);
}

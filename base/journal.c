/* SPDX-License-Identifier: MIT */

/* Entries go to the journal if standard error is the journal (JOURNAL_STREAM, systemd.exec(5)), else each becomes one line on
 * standard error:
 *
 *     granted: pg-dump may start run=0123 pools=db:2 token=1763640079123456 seq=12
 *     warning: cannot read jobs/pg-dump: Permission denied
 *
 * A line is printable ASCII: whatever else stands in a text is written as an escape, so a name or an error text can neither
 * begin a line of its own nor speak to a terminal. */

#define SD_JOURNAL_SUPPRESS_LOCATION /* the event's name says more than a line of this file */

#include "base/journal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include "base/file.h"

#define FIELDS_MAX 32                              /* of one entry, besides the four that are made here */
#define LINE_SIZE PIPE_BUF                         /* up to this a line is written whole or not at all (pipe(7)) */
#define CUT_MARK "[cut]"                           /* stands at the end of a line that did not fit */
#define JOURNAL_SOCKET "/run/systemd/journal/socket"

struct journal {
    const char *identifier;
    bool to_journal;  /* standard error is the journal's */
    uint64_t n_lost;  /* lines that standard error did not take; told in front of the next one that it takes */
};

/* --- the readable line --- */

struct line {
    char text[LINE_SIZE];
    size_t size;
    bool cut;
};

static void line_put(struct line *l, const char *text, size_t n) {
    size_t room = sizeof(l->text) - strlen(CUT_MARK) - 1 - l->size; /* 1: the newline */

    if (l->cut || n > room) {
        l->cut = true; /* whole pieces only: half an escape would be read as something else */
        return;
    }
    memcpy(l->text + l->size, text, n);
    l->size += n;
}

static void line_puts(struct line *l, const char *text) {
    line_put(l, text, strlen(text));
}

static void line_put_escaped(struct line *l, unsigned char c, bool quoted) {
    char escape[5];

    if (c == '\n')
        line_puts(l, "\\n");
    else if (c == '\t')
        line_puts(l, "\\t");
    else if (quoted && (c == '"' || c == '\\'))
        line_put(l, (char[]){'\\', (char) c}, 2);
    else if (c >= ' ' && c <= '~')
        line_put(l, (char *) &c, 1);
    else
        line_put(l, escape, (size_t) snprintf(escape, sizeof(escape), "\\x%02x", c));
}

static bool value_is_plain(const char *value) {
    for (const char *c = value; *c; c++)
        if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\\' || *c == '=')
            return false;
    return value[0] != '\0';
}

static void line_put_field(struct line *l, const struct journal_field *f) {
    const char *name = strncmp(f->name, "BERTH_", 6) == 0 ? f->name + 6 : f->name;

    line_puts(l, " ");
    for (const char *c = name; *c; c++)
        line_put(l, (char[]){(char) (*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c)}, 1);
    line_puts(l, "=");
    bool quoted = !value_is_plain(f->value);
    if (quoted)
        line_puts(l, "\"");
    for (const char *c = f->value; *c; c++)
        line_put_escaped(l, (unsigned char) *c, quoted);
    if (quoted)
        line_puts(l, "\"");
}

static void line_format(struct line *l, int priority, const char *event, const char *message,
                        const struct journal_field *fields, size_t n_fields) {
    l->size = 0;
    l->cut = false;
    if (event) {
        line_puts(l, event);
        line_puts(l, ": ");
    } else if (priority <= LOG_ERR)
        line_puts(l, "error: ");
    else if (priority == LOG_WARNING)
        line_puts(l, "warning: ");
    for (const char *c = message; *c; c++)
        line_put_escaped(l, (unsigned char) *c, false);
    for (size_t i = 0; i < n_fields; i++)
        if (!event || strcmp(fields[i].name, "BERTH_EVENT") != 0) /* the line begins with it */
            line_put_field(l, &fields[i]);
    if (l->cut) { /* line_put() kept room for both */
        memcpy(l->text + l->size, CUT_MARK, strlen(CUT_MARK));
        l->size += strlen(CUT_MARK);
    }
    l->text[l->size++] = '\n';
}

static void send_line(struct journal *j, int priority, const char *event, const char *message,
                      const struct journal_field *fields, size_t n_fields) {
    struct line l;

    if (j->n_lost > 0) {
        char lost[64];
        int n = snprintf(lost, sizeof(lost), "error: %" PRIu64 " lines before this one were lost\n", j->n_lost);

        if (file_write(STDERR_FILENO, lost, (size_t) n) == 0)
            j->n_lost = 0;
    }
    line_format(&l, priority, event, message, fields, n_fields);
    if (file_write(STDERR_FILENO, l.text, l.size) < 0)
        j->n_lost++; /* nobody is left to tell now */
}

/* --- the journal --- */

/* Writes "NAME=value" at *at and moves *at behind it. */
static struct iovec put_entry(char **at, const char *name, const char *value) {
    size_t n_name = strlen(name), n_value = strlen(value);
    struct iovec entry = {.iov_base = *at, .iov_len = n_name + 1 + n_value};

    memcpy(*at, name, n_name);
    (*at)[n_name] = '=';
    memcpy(*at + n_name + 1, value, n_value);
    *at += entry.iov_len;
    return entry;
}

static int send_entry(const struct journal_field *fields, size_t n_fields) {
    struct iovec entries[FIELDS_MAX + 4];
    size_t size = 0;

    /* Without a journal sd_journal_sendv() does nothing and says that all is well (sd_journal_print(3)). */
    if (access(JOURNAL_SOCKET, W_OK) < 0)
        return -errno;
    for (size_t i = 0; i < n_fields; i++)
        size += strlen(fields[i].name) + 1 + strlen(fields[i].value);
    _cleanup_free_ char *text = malloc(size);
    if (!text)
        return -ENOMEM;
    char *at = text;
    for (size_t i = 0; i < n_fields; i++)
        entries[i] = put_entry(&at, fields[i].name, fields[i].value);
    return sd_journal_sendv(entries, (int) n_fields);
}

static int send_journal(struct journal *j, int priority, const char *message_id, const char *message,
                        const struct journal_field *fields, size_t n_fields) {
    struct journal_field all[FIELDS_MAX + 4];
    char priority_text[12];
    size_t n = 0;

    snprintf(priority_text, sizeof(priority_text), "%d", priority);
    all[n++] = (struct journal_field){"MESSAGE", message};
    all[n++] = (struct journal_field){"PRIORITY", priority_text};
    all[n++] = (struct journal_field){"SYSLOG_IDENTIFIER", j->identifier};
    if (message_id)
        all[n++] = (struct journal_field){"MESSAGE_ID", message_id};
    if (n_fields > FIELDS_MAX)
        return -E2BIG;
    for (size_t i = 0; i < n_fields; i++)
        all[n++] = fields[i];
    return send_entry(all, n);
}

/* Whether descriptor 2 is the stream that the service manager opened: it may have been redirected since. */
static bool stderr_is_journal(void) {
    const char *stream = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat st;

    if (!stream || fstat(STDERR_FILENO, &st) < 0)
        return false;
    snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
    return strcmp(stream, own) == 0;
}

/* --- the module --- */

int journal_new(struct journal **ret, const char *identifier) {
    struct journal *j = calloc(1, sizeof(*j));

    if (!j)
        return -ENOMEM;
    j->identifier = identifier;
    j->to_journal = stderr_is_journal();
    *ret = j;
    return 0;
}

struct journal *journal_free(struct journal *j) {
    free(j);
    return NULL;
}

void journal_send(struct journal *j, int priority, const char *message_id, const char *event, const char *message,
                  const struct journal_field *fields, size_t n_fields) {
    if (j->to_journal && send_journal(j, priority, message_id, message, fields, n_fields) >= 0)
        return;
    send_line(j, priority, event, message, fields, n_fields);
}

void journal_log(struct journal *j, int priority, const char *format, ...) {
    char message[LINE_SIZE];
    va_list ap;

    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    journal_send(j, priority, NULL, NULL, message, NULL, 0);
}

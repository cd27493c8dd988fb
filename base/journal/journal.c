/* SPDX-License-Identifier: MIT */

/* Entries go to the journal if standard error is the journal (JOURNAL_STREAM, systemd.exec(5)), else each becomes one line on
 * standard error:
 *
 *     granted: pg-dump may start run=0123 pools=db:2 token=1763640079123456 seq=12
 *     warning: cannot read jobs/pg-dump: Permission denied
 *
 * A line is printable ASCII. Other characters are escaped, so that a name or an error text can neither begin a line of its own
 * nor control a terminal. */

#include "base/journal/journal.h"

#include <endian.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>

#include "base/file.h"
#include "base/journal/journal-socket.h"

#define FIELDS_MAX 40                              /* of one entry, besides the four that are made here: as many as an event has */
#define LINE_SIZE PIPE_BUF                         /* a line up to this size is written whole or not at all (pipe(7)) */
#define CUT_MARK "[cut]"                           /* at the end of a line that did not fit */
#define DRAIN_TIME (300 * USEC_PER_MSEC)           /* for journald, at exit */

struct journal {
    const char *identifier;
    struct journal_socket *socket; /* NULL: standard error is not the journal's */
    uint64_t n_lost;               /* lines that standard error did not take; reported before the next line that it takes */
    uint64_t n_lost_ever;          /* lines, and entries that journald did not take */
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

/* Writes a line. Does not wait for a journal whose stream is full. */
static int write_line(const struct journal *j, const char *text, size_t size) {
    if (!j->socket)
        return file_write(STDERR_FILENO, text, size);
    if (send(STDERR_FILENO, text, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return 0;
    return errno == ENOTSOCK ? file_write(STDERR_FILENO, text, size) : -errno;
}

static void send_line(struct journal *j, int priority, const char *event, const char *message,
                      const struct journal_field *fields, size_t n_fields) {
    struct line l;

    if (j->n_lost > 0) {
        char lost[64];
        int n = snprintf(lost, sizeof(lost), "error: %" PRIu64 " lines before this one were lost\n", j->n_lost);

        if (write_line(j, lost, (size_t) n) == 0)
            j->n_lost = 0;
    }
    line_format(&l, priority, event, message, fields, n_fields);
    if (write_line(j, l.text, l.size) < 0)
        j->n_lost++, j->n_lost_ever++; /* reported before the next line */
}

/* --- the journal --- */

/* Returns the most bytes that put_field() writes. */
static size_t field_size(const struct journal_field *f) {
    return strlen(f->name) + 1 + sizeof(uint64_t) + strlen(f->value) + 1;
}

/* Writes "NAME=value\n", or for a value with newlines "NAME\n", its size and "value\n". Returns the end. */
static char *put_field(char *at, const struct journal_field *f) {
    size_t size = strlen(f->value);
    uint64_t size_le = htole64(size);

    at = stpcpy(at, f->name);
    if (!strchr(f->value, '\n'))
        *at++ = '=';
    else {
        *at++ = '\n';
        at = mempcpy(at, &size_le, sizeof(size_le));
    }
    at = mempcpy(at, f->value, size);
    *at++ = '\n';
    return at;
}

static int send_entry(struct journal *j, const struct journal_field *fields, size_t n_fields) {
    size_t size = 0;

    for (size_t i = 0; i < n_fields; i++)
        size += field_size(&fields[i]);
    _cleanup_free_ char *text = malloc(size);
    if (!text)
        return -ENOMEM;
    char *at = text;
    for (size_t i = 0; i < n_fields; i++)
        at = put_field(at, &fields[i]);
    return journal_socket_send(j->socket, text, (size_t) (at - text));
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
    return send_entry(j, all, n);
}

/* Returns whether descriptor 2 is the stream that the service manager opened: it may have been redirected since. */
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

uint64_t journal_count_lost(const struct journal *j) {
    return j->n_lost_ever;
}

static void journal_on_lost(uint64_t n_lost, void *userdata) {
    struct journal *j = userdata;

    j->n_lost_ever += n_lost;
    journal_log(j, LOG_WARNING, "%" PRIu64 " entries were lost: the journal did not take them", n_lost);
}

int journal_new(struct journal **ret, const char *identifier) {
    struct journal *j = calloc(1, sizeof(*j));

    if (!j)
        return -ENOMEM;
    j->identifier = identifier;
    int r = stderr_is_journal() ? journal_socket_new(&j->socket, journal_on_lost, j) : 0;
    if (r < 0) {
        free(j);
        return r;
    }
    *ret = j;
    return 0;
}

struct journal *journal_free(struct journal *j) {
    uint64_t n_lost = j && j->socket ? journal_socket_drain(j->socket, DRAIN_TIME) : 0;
    char lost[80];

    if (n_lost > 0) {
        int n = snprintf(lost, sizeof(lost), "%" PRIu64 " entries were lost: the journal did not take them\n", n_lost);

        (void) write_line(j, lost, (size_t) n);
    }
    if (j)
        journal_socket_free(j->socket);
    free(j);
    return NULL;
}

int journal_attach_event(struct journal *j, sd_event *event) {
    return j->socket ? journal_socket_attach(j->socket, event) : 0;
}

void journal_send(struct journal *j, int priority, const char *message_id, const char *event, const char *message,
                  const struct journal_field *fields, size_t n_fields) {
    if (j->socket && send_journal(j, priority, message_id, message, fields, n_fields) >= 0)
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

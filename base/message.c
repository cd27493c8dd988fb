/* SPDX-License-Identifier: MIT */
/* Messages as text in one datagram: a strict parser, and a writer that cannot write what the parser would refuse. */

#include "base/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/connection.h"
#include "base/job-name.h"
#include "base/number.h"

#define MESSAGE_TEXT_VALUE_MAX 512 /* what message_put_text() keeps of a text */
#define NTH_KEY_SIZE 32

static bool is_key_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static bool is_value_char(char c) {
    return c >= ' ' && c <= '~';
}

static bool is_key(const char *text) {
    if (!*text)
        return false;
    for (; *text; text++)
        if (!is_key_char(*text))
            return false;
    return true;
}

static bool is_value(const char *text) {
    for (; *text; text++)
        if (!is_value_char(*text))
            return false;
    return true;
}

/* Parses one "key=value", which is cut out of the text already. */
static int message_add_field(struct message *m, char *line) {
    char *value = strchr(line, '=');

    if (!value || m->n_fields == MESSAGE_FIELDS_MAX)
        return -EBADMSG;
    *value++ = '\0';
    if (!is_key(line) || !is_value(value) || message_get(m, line))
        return -EBADMSG;
    m->fields[m->n_fields++] = (struct message_field) {.key = line, .value = value};
    return 0;
}

/* Splits m->text, which has `size` bytes and a NUL. */
static int message_split(struct message *m, size_t size) {
    char *line = m->text, *end = m->text + size;

    m->verb = "";
    m->n_fields = 0;
    if (size == 0 || end[-1] != '\n' || memchr(m->text, '\0', size))
        return -EBADMSG;
    while (line < end) {
        char *newline = memchr(line, '\n', (size_t) (end - line));

        *newline = '\0';
        if (line == m->text) {
            if (!is_key(line))
                return -EBADMSG;
            m->verb = line;
        } else if (message_add_field(m, line) < 0)
            return -EBADMSG;
        line = newline + 1;
    }
    return 0;
}

int message_parse(struct message *m, const void *data, size_t size) {
    if (size > MESSAGE_SIZE_MAX)
        return -EBADMSG;
    if (size > 0)
        memcpy(m->text, data, size);
    m->text[size] = '\0';
    return message_split(m, size);
}

bool message_is(const struct message *m, const char *verb) {
    return strcmp(m->verb, verb) == 0;
}

const char *message_get(const struct message *m, const char *key) {
    for (size_t i = 0; i < m->n_fields; i++)
        if (strcmp(m->fields[i].key, key) == 0)
            return m->fields[i].value;
    return NULL;
}

int message_get_u64(const struct message *m, const char *key, uint64_t *ret) {
    const char *value = message_get(m, key);

    if (!value)
        return -ENODATA;
    return number_parse(value, UINT64_MAX, ret) < 0 ? -EBADMSG : 0;
}

static int get_valid(const struct message *m, const char *key, bool (*is_valid)(const char *text), char *ret) {
    const char *value = message_get(m, key);

    if (!value)
        return -ENODATA;
    if (!is_valid(value))
        return -EBADMSG;
    memcpy(ret, value, strlen(value) + 1);
    return 0;
}

int message_get_id(const struct message *m, const char *key, char ret[static ID_TEXT_SIZE]) {
    return get_valid(m, key, id_is_valid, ret);
}

int message_get_name(const struct message *m, const char *key, char ret[static NAME_MAX_LENGTH + 1]) {
    return get_valid(m, key, name_is_valid, ret);
}

int message_get_job(const struct message *m, const char *key, char ret[static NAME_MAX_LENGTH + 1]) {
    return get_valid(m, key, job_name_is_runnable, ret);
}

static const char *nth_key(const char *key, unsigned i, char buffer[static NTH_KEY_SIZE]) {
    (void) snprintf(buffer, NTH_KEY_SIZE, "%s-%u", key, i);
    return buffer;
}

const char *message_get_nth(const struct message *m, const char *key, unsigned i) {
    char buffer[NTH_KEY_SIZE];

    return message_get(m, nth_key(key, i, buffer));
}

static void writer_add(struct message_writer *w, const char *text, size_t size) {
    if (w->error < 0)
        return;
    if (size > sizeof(w->text) - w->size) {
        w->error = -EMSGSIZE;
        return;
    }
    memcpy(w->text + w->size, text, size);
    w->size += size;
}

void message_begin(struct message_writer *w, const char *verb) {
    w->size = 0;
    w->error = is_key(verb) ? 0 : -EINVAL;
    writer_add(w, verb, strlen(verb));
    writer_add(w, "\n", 1);
}

void message_put(struct message_writer *w, const char *key, const char *value) {
    if (w->error == 0 && (!is_key(key) || !is_value(value)))
        w->error = -EINVAL;
    writer_add(w, key, strlen(key));
    writer_add(w, "=", 1);
    writer_add(w, value, strlen(value));
    writer_add(w, "\n", 1);
}

void message_put_nth(struct message_writer *w, const char *key, unsigned i, const char *value) {
    char buffer[NTH_KEY_SIZE];

    message_put(w, nth_key(key, i, buffer), value);
}

void message_put_text(struct message_writer *w, const char *key, const char *value) {
    char clean[MESSAGE_TEXT_VALUE_MAX + 1];
    size_t n = 0;

    for (; n < MESSAGE_TEXT_VALUE_MAX && value[n]; n++)
        clean[n] = is_value_char(value[n]) ? value[n] : '?';
    clean[n] = '\0';
    message_put(w, key, clean);
}

void message_put_u64(struct message_writer *w, const char *key, uint64_t value) {
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    message_put(w, key, text);
}

int message_send(int fd, const struct message_writer *w) {
    ssize_t n;

    if (w->error < 0)
        return w->error;
    do
        n = send(fd, w->text, w->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int message_receive(int fd, struct message *m) {
    ssize_t n;

    m->verb = "";
    m->n_fields = 0;
    /* A peer that closed without reading everything leaves one ECONNRESET in front of the last data that it
     * sent. */
    do
        n = connection_receive(fd, m->text, MESSAGE_SIZE_MAX);
    while (n == -EINTR || n == -ECONNRESET);
    if (n == -EMSGSIZE)
        return -EBADMSG;
    if (n <= 0)
        return n < 0 ? (int) n : -ENOTCONN;
    m->text[n] = '\0';
    return message_split(m, (size_t) n);
}

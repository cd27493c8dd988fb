/* SPDX-License-Identifier: MIT */
#include "runner/facts.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/job-name.h"
#include "base/number.h"

#define VALUE_MAX 512

/* --- kinds of values: base/message.h accepts printable ASCII alone --- */

static bool is_text(const char *value) {
    return strlen(value) <= VALUE_MAX;
}

static bool is_number(const char *value) {
    uint64_t number;

    return number_parse(value, UINT64_MAX, &number) == 0;
}

static bool is_word(const char *value) {
    return *value && strlen(value) <= NAME_MAX_LENGTH &&
           value[strspn(value, "abcdefghijklmnopqrstuvwxyz-")] == '\0';
}

/* The characters of RFC 3339. Only the command reads the value. */
static bool is_time(const char *value) {
    return *value && strlen(value) <= 40 && value[strspn(value, "0123456789-:.+TZ")] == '\0';
}

static bool is_signal(const char *value) {
    return *value && strlen(value) <= 16 &&
           value[strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-")] == '\0';
}

static const struct fact {
    const char *field, *variable;
    bool (*is_valid)(const char *value);
} table[] = {
    {"trigger", "BERTH_TRIGGER", is_word},
    {"due", "BERTH_DUE", is_time},
    {"attempt", "BERTH_ATTEMPT", is_number},
    {"first-run", "BERTH_FIRST_RUN", id_is_valid},
    {"depth", "BERTH_DEPTH", is_number},
    {"of-job", "BERTH_OF_JOB", job_name_is_runnable},
    {"of-instance", "BERTH_OF_INSTANCE", name_is_valid},
    {"of-run", "BERTH_OF_RUN", id_is_valid},
    {"of-first-run", "BERTH_OF_FIRST_RUN", id_is_valid},
    {"of-result", "BERTH_OF_RESULT", is_word},
    {"of-exit-code", "BERTH_OF_EXIT_CODE", is_number},
    {"of-signal", "BERTH_OF_SIGNAL", is_signal},
    {"of-reason", "BERTH_OF_REASON", is_text},
    {"of-host", "BERTH_OF_HOST", name_is_valid},
    {"of-trigger", "BERTH_OF_TRIGGER", is_word},
    {"of-due", "BERTH_OF_DUE", is_time},
    {"of-queued", "BERTH_OF_QUEUED", is_time},
    {"of-started", "BERTH_OF_STARTED", is_time},
    {"of-ended", "BERTH_OF_ENDED", is_time},
    {"of-wait-ms", "BERTH_OF_WAIT_MS", is_number},
    {"of-run-ms", "BERTH_OF_RUN_MS", is_number},
    {"of-attempt", "BERTH_OF_ATTEMPT", is_number},
    {"of-bad", "BERTH_OF_BAD", is_number},
    {"of-since", "BERTH_OF_SINCE", is_time},
    {"of-event", "BERTH_OF_EVENT", is_word},
};

_Static_assert(ELEMENTSOF(table) <= FACTS_MAX, "FACTS_MAX is too small");

int facts_parse(struct facts *ret, const struct message *m) {
    struct facts f = {0};
    size_t size = 1;

    for (size_t i = 0; i < ELEMENTSOF(table); i++) {
        const char *value = message_get(m, table[i].field);
        size_t n = value ? strlen(value) + 1 : 0;

        if (!value)
            continue;
        if (!table[i].is_valid(value) || size + n > sizeof(f.text))
            return -EBADMSG;
        memcpy(f.text + size, value, n);
        f.at[i] = (uint16_t) size;
        size += n;
    }
    f.size = size > 1 ? (uint16_t) size : 0;
    *ret = f;
    return 0;
}

void facts_put(const struct facts *f, struct message_writer *w) {
    for (size_t i = 0; i < ELEMENTSOF(table) && f->size > 0; i++)
        if (f->at[i])
            message_put(w, table[i].field, f->text + f->at[i]);
}

int facts_each(const struct facts *f, int (*each)(const char *variable, const char *value, void *userdata),
               void *userdata) {
    int r = 0;

    for (size_t i = 0; i < ELEMENTSOF(table) && f->size > 0 && r == 0; i++)
        if (f->at[i])
            r = each(table[i].variable, f->text + f->at[i], userdata);
    return r;
}

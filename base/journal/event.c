/* SPDX-License-Identifier: MIT */

/* Turns an event into a journal entry: the BERTH_* fields in the order of berth-events(7), BERTH_SEQ
 * last. */

#include "base/journal/event.h"

#include <stdarg.h>
#include <string.h>
#include <syslog.h>

#include "base/job-name.h"
#include "base/journal/event-ring.h"
#include "base/name.h"
#include "base/text.h"

#define FIELDS_MAX 40        /* each BERTH_* field once */
#define NUMBER_TEXT_SIZE 24  /* of any 64-bit number, sign and NUL included */
#define MESSAGE_SIZE 1024

struct events {
    struct journal *journal;
    char host[NAME_MAX_LENGTH + 1], namespace[NAME_MAX_LENGTH + 1];
    struct event_ring *ring; /* draws BERTH_SEQ */
    uint64_t counts[EVENT_TYPES];
};

static const struct {
    const char *name, *message_id;
    int priority;
} table[EVENT_TYPES] = {
#define EVENT(constant, name, priority, message_id, meaning) [EVENT_##constant] = {name, message_id, priority},
#include "base/journal/events.def"
#undef EVENT
};

#define CLEANED_MAX 6 /* texts of one event that other hosts or users wrote */
#define CLEANED_SIZE 256

/* The fields of one entry, with memory for their texts. */
struct fields {
    struct journal_field items[FIELDS_MAX];
    char numbers[FIELDS_MAX][NUMBER_TEXT_SIZE];
    char cleaned[CLEANED_MAX][CLEANED_SIZE]; /* texts that were not printable UTF-8 */
    size_t n, n_cleaned;
};

static bool is_clean(const char *text) {
    return text_is_utf8(text) && !text_has_control(text, true);
}

/* Names and reasons may come from Redis, where any host can write any bytes; the journal's JSON needs
 * UTF-8. */
static void fields_add(struct fields *f, const char *name, const char *value) {
    if (value && !is_clean(value) && f->n_cleaned < CLEANED_MAX) {
        char *cleaned = f->cleaned[f->n_cleaned++];

        (void) snprintf(cleaned, CLEANED_SIZE, "%s", value);
        text_make_printable(cleaned);
        value = cleaned;
    }
    if (value)
        f->items[f->n++] = (struct journal_field){name, value};
}

static void fields_add_number(struct fields *f, bool present, const char *name, uint64_t number) {
    if (!present)
        return;
    snprintf(f->numbers[f->n], NUMBER_TEXT_SIZE, "%" PRIu64, number);
    fields_add(f, name, f->numbers[f->n]);
}

static void fields_fill(struct fields *f, struct events *e, const struct event *event) {
    fields_add(f, "BERTH_EVENT", table[event->type].name);
    fields_add(f, "BERTH_JOB", event->job);
    fields_add(f, "BERTH_RUN", event->run);
    fields_add(f, "BERTH_POOLS", event->pools);
    fields_add_number(f, event->token > 0, "BERTH_TOKEN", event->token);
    fields_add_number(f, event->ticket > 0, "BERTH_TICKET", event->ticket);
    fields_add_number(f, event->clock > 0, "BERTH_CLOCK", event->clock);
    fields_add_number(f, event->lead_usec >= USEC_PER_MSEC, "BERTH_LEAD_MS", event->lead_usec / USEC_PER_MSEC);
    fields_add(f, "BERTH_HOST", event->host ? event->host : e->host);
    fields_add(f, "BERTH_NAMESPACE", e->namespace);
    fields_add_number(f, event->head_start_usec > 0, "BERTH_HEAD_START_MS", event->head_start_usec / USEC_PER_MSEC);
    fields_add(f, "BERTH_ON_LEASE_LOST", event->continues ? "continue" : NULL);
    fields_add(f, "BERTH_REDIS", event->redis);
    fields_add(f, "BERTH_LIMITS", event->limits);
    fields_add_number(f, event->took.has_wait, "BERTH_WAIT_MS", event->took.wait_usec / USEC_PER_MSEC);
    fields_add_number(f, event->took.has_run, "BERTH_RUN_MS", event->took.run_usec / USEC_PER_MSEC);
    fields_add_number(f, event->position > 0, "BERTH_POSITION", event->position);
    fields_add(f, "BERTH_RESULT", event->result);
    fields_add_number(f, event->exit.has_code, "BERTH_EXIT_CODE", (uint64_t) event->exit.code);
    fields_add_number(f, event->exit.has_signal, "BERTH_SIGNAL", (uint64_t) event->exit.signal);
    fields_add_number(f, event->caller.has_uid, "BERTH_UID", event->caller.uid);
    fields_add(f, "BERTH_ON_BEHALF", event->caller.on_behalf);
    fields_add(f, "BERTH_METHOD", event->caller.method);
    fields_add(f, "BERTH_TRIGGER", event->origin.trigger);
    fields_add(f, "BERTH_DUE", event->origin.due);
    fields_add_number(f, event->origin.attempt > 0, "BERTH_ATTEMPT", event->origin.attempt);
    fields_add_number(f, event->origin.attempts > 0, "BERTH_ATTEMPTS", event->origin.attempts);
    fields_add(f, "BERTH_FIRST_RUN", event->origin.first_run);
    fields_add(f, "BERTH_INSTANCE", event->job ? job_name_instance(event->job) : NULL);
    fields_add(f, "BERTH_UNTIL", event->missed.until);
    fields_add_number(f, event->missed.count > 0, "BERTH_COUNT", event->missed.count);
    fields_add_number(f, event->origin.has_late, "BERTH_LATE_MS", event->origin.late_usec / USEC_PER_MSEC);
    fields_add_number(f, event->step_usec > 0, "BERTH_STEP_MS", event->step_usec / USEC_PER_MSEC);
    fields_add(f, "BERTH_OTHER_RUN", event->other.run);
    fields_add(f, "BERTH_OTHER_HOST", event->other.host);
    fields_add_number(f, event->delay_usec > 0, "BERTH_DELAY_MS", event->delay_usec / USEC_PER_MSEC);
    fields_add(f, "BERTH_OF_JOB", event->of.job);
    fields_add(f, "BERTH_OF_RUN", event->of.run);
    fields_add(f, "BERTH_REASON", event->reason);
    fields_add_number(f, true, "BERTH_SEQ", event_ring_draw(e->ring));
}

int events_new(struct events **ret, struct journal *journal, const char *host, const char *namespace) {
    _cleanup_(events_freep) struct events *e = calloc(1, sizeof(*e));
    int r;

    if (!e)
        return -ENOMEM;
    r = event_ring_new(&e->ring);
    if (r < 0)
        return r;
    e->journal = journal;
    snprintf(e->host, sizeof(e->host), "%s", host);
    snprintf(e->namespace, sizeof(e->namespace), "%s", namespace);
    *ret = steal_pointer(&e);
    return 0;
}

struct events *events_free(struct events *e) {
    if (!e)
        return NULL;
    event_ring_free(e->ring);
    free(e);
    return NULL;
}

struct journal *events_get_journal(struct events *e) {
    return e->journal;
}

struct event_ring *events_get_ring(struct events *e) {
    return e->ring;
}

void event_emit(struct events *e, const struct event *event, const char *format, ...) {
    struct fields fields;
    char message[MESSAGE_SIZE];
    va_list ap;

    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    if (!is_clean(message))
        text_make_printable(message);
    e->counts[event->type]++;
    fields.n = fields.n_cleaned = 0;
    fields_fill(&fields, e, event);
    journal_send(e->journal, event_priority(event), event_message_id(event->type), event_name(event->type), message,
                 fields.items, fields.n);
    event_ring_add(e->ring, event->type, message, fields.items, fields.n);
}

static bool has_result(const struct event *event, const char *result) {
    return event->result && strcmp(event->result, result) == 0;
}

static int priority_of_end(const struct event *event) {
    if (has_result(event, "success") || has_result(event, "stopped"))
        return LOG_INFO;
    return event->caller.is_there && !has_result(event, "guard-died") ? LOG_NOTICE : LOG_WARNING; /* guard-died: `berth run` is dead, too */
}

int event_priority(const struct event *event) {
    switch (event->type) {
    case EVENT_EXITED:
    case EVENT_WITHDRAWN:
        return priority_of_end(event);
    case EVENT_REFUSED:
        return event->caller.is_there ? LOG_INFO : LOG_WARNING;
    default:
        return table[event->type].priority;
    }
}

uint64_t events_count(const struct events *e, enum event_type type) {
    return e->counts[type];
}

const char *event_name(enum event_type type) {
    return table[type].name;
}

const char *event_message_id(enum event_type type) {
    return table[type].message_id;
}

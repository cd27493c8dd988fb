/* SPDX-License-Identifier: MIT */

/* The table of events, and how one becomes an entry: BERTH_* fields in the order of REFERENCE.md, BERTH_SEQ last. */

#include "base/journal/event.h"

#include <stdarg.h>
#include <string.h>
#include <syslog.h>

#include "base/name.h"
#include "base/text.h"

#define FIELDS_MAX 24        /* one of each BERTH_* field */
#define NUMBER_TEXT_SIZE 24  /* of any 64-bit number, sign and NUL included */
#define MESSAGE_SIZE 1024

struct events {
    struct journal *journal;
    char host[NAME_MAX_LENGTH + 1], namespace[NAME_MAX_LENGTH + 1];
    uint64_t seq;
};

/* A message id never changes once released: catalogs and people's filters name it. */
static const struct {
    const char *name, *message_id;
    int priority;
} table[EVENT_TYPES] = {
    [EVENT_QUEUED] = {"queued", "ffb571613522331753fedd97a54fdb39", LOG_INFO},
    [EVENT_GRANTED] = {"granted", "0172a62d888ea388bb5be14d08a9cfa4", LOG_INFO},
    [EVENT_REFUSED] = {"refused", "bbde744c290beed80400342ebc7b9cb9", LOG_WARNING},
    [EVENT_WITHDRAWN] = {"withdrawn", "8f40dd3a2243cd644c2f81b77a8c6ef7", LOG_INFO},
    [EVENT_STARTED] = {"started", "c28e9a04bcbcb3fae26e00f20d272c61", LOG_INFO},
    [EVENT_EXITED] = {"exited", "f09ad2105fc5238eabb0949be3bae5c2", LOG_INFO},
    [EVENT_RELEASED] = {"released", "dfd9908e8de35b80884b75125e4cabd6", LOG_INFO},
    [EVENT_STOPPING] = {"stopping", "6ade4967785be7fdab63fb13519f9118", LOG_INFO},
    [EVENT_LEASE_LATE] = {"lease-late", "a8d7085c6c0fcb9781f2f9599e409430", LOG_WARNING},
    [EVENT_LEASE_LOST] = {"lease-lost", "813b7a0aa43210fec68bf16222817228", LOG_ERR},
    [EVENT_FENCED] = {"fenced", "06a32eaa4fd63af79cb03e056d9a1de8", LOG_WARNING},
    [EVENT_RECLAIMED] = {"reclaimed", "e0e30669598d484f6eca627bfa909bdc", LOG_NOTICE},
    [EVENT_OVERCOMMITTED] = {"overcommitted", "d84e8e63766883d2dadb102b0cb1082c", LOG_ERR},
    [EVENT_GUARD_DIED] = {"guard-died", "7b33b083a0ddde052790e7d347ed0ebc", LOG_ERR},
    [EVENT_REDIS_CONNECTED] = {"redis-connected", "94459ddd2ca70bd81dc585181e25e340", LOG_INFO},
    [EVENT_REDIS_LOST] = {"redis-lost", "6ba78fdba0b6c69f82045fb82d024131", LOG_WARNING},
    [EVENT_GRACE_BEGUN] = {"grace-begun", "3946d910919964386aed0c5e7ffc9a09", LOG_NOTICE},
    [EVENT_GRACE_ENDED] = {"grace-ended", "8264aef784b68637da615859f139590a", LOG_NOTICE},
    [EVENT_SESSION_LOST] = {"session-lost", "e00488ea3fd25aea4a039f56fc71af88", LOG_ERR},
    [EVENT_LEASE_DIFFERS] = {"lease-differs", "f715d5dc4f6c59be540d189612497dbf", LOG_ERR},
    [EVENT_HOST_EXPIRED] = {"host-expired", "b88364ec73e0d1178e650db4646470b6", LOG_WARNING},
    [EVENT_HOST_NAME_TAKEN] = {"host-name-taken", "15481366c5973c00c5b9c2e97de57959", LOG_ERR},
    [EVENT_LIMITS_DIFFER] = {"limits-differ", "d629bba9293cc5e586ed88dd3aafda62", LOG_WARNING},
    [EVENT_LIMIT_CHANGED] = {"limit-changed", "377ba41c1b3104804634f794bc1ea20e", LOG_NOTICE},
    [EVENT_PARKED] = {"parked", "16e8b32e39b0fff8b028f748fb48487a", LOG_NOTICE},
    [EVENT_REVOKED] = {"revoked", "8890ea38a75ab93fdbc5e671e0d70b68", LOG_NOTICE},
    [EVENT_CONFIG_LOADED] = {"config-loaded", "52c0b384fd2ed3150d9e9ae08109f0bc", LOG_INFO},
    [EVENT_CONFIG_REFUSED] = {"config-refused", "753fb46899670e4f7ecbc83f496141f3", LOG_ERR},
    [EVENT_DRAINED] = {"drained", "dc5b1b86739c430cb7a45ab52012d652", LOG_NOTICE},
    [EVENT_UNDRAINED] = {"undrained", "38075ed49ae543bf8f19305ba1ceb78e", LOG_NOTICE},
    [EVENT_READY] = {"ready", "00fb8e2f48f1c3198202d569288f2249", LOG_INFO},
    [EVENT_STOPPING_DAEMON] = {"stopping-daemon", "c338ffc2c33826cf9570c4dfc43bd5a5", LOG_INFO},
};

#define CLEANED_MAX 6 /* as many texts as an event has that others wrote */
#define CLEANED_SIZE 256

/* The fields of one entry, and the texts of those that are numbers. */
struct fields {
    struct journal_field items[FIELDS_MAX];
    char numbers[FIELDS_MAX][NUMBER_TEXT_SIZE];
    char cleaned[CLEANED_MAX][CLEANED_SIZE]; /* texts of somebody else's that were none */
    size_t n, n_cleaned;
};

static bool is_clean(const char *text) {
    return text_is_utf8(text) && !text_has_control(text, true);
}

/* Names and reasons may come from Redis, where any host can write any bytes. Readers of the journal (JSON) need UTF-8. */
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
    fields_add(f, "BERTH_HOST", event->host ? event->host : e->host);
    fields_add(f, "BERTH_NAMESPACE", e->namespace);
    fields_add_number(f, event->head_start_usec > 0, "BERTH_HEAD_START_MS", event->head_start_usec / USEC_PER_MSEC);
    fields_add(f, "BERTH_ON_LEASE_LOST", event->continues ? "continue" : NULL);
    fields_add(f, "BERTH_LIMITS", event->limits);
    fields_add_number(f, event->has_wait, "BERTH_WAIT_MS", event->wait_usec / USEC_PER_MSEC);
    fields_add_number(f, event->has_run_time, "BERTH_RUN_MS", event->run_usec / USEC_PER_MSEC);
    fields_add_number(f, event->position > 0, "BERTH_POSITION", event->position);
    fields_add(f, "BERTH_RESULT", event->result);
    fields_add_number(f, event->has_exit_code, "BERTH_EXIT_CODE", (uint64_t) event->exit_code);
    fields_add_number(f, event->has_signal, "BERTH_SIGNAL", (uint64_t) event->signal);
    fields_add_number(f, event->has_uid, "BERTH_UID", event->uid);
    fields_add(f, "BERTH_REASON", event->reason);
    fields_add_number(f, true, "BERTH_SEQ", ++e->seq);
}

int events_new(struct events **ret, struct journal *journal, const char *host, const char *namespace) {
    struct events *e = calloc(1, sizeof(*e));

    if (!e)
        return -ENOMEM;
    e->journal = journal;
    snprintf(e->host, sizeof(e->host), "%s", host);
    snprintf(e->namespace, sizeof(e->namespace), "%s", namespace);
    *ret = e;
    return 0;
}

struct events *events_free(struct events *e) {
    free(e);
    return NULL;
}

struct journal *events_get_journal(struct events *e) {
    return e->journal;
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
    fields.n = fields.n_cleaned = 0;
    fields_fill(&fields, e, event);
    journal_send(e->journal, event_priority(event), event_message_id(event->type), event_name(event->type), message,
                 fields.items, fields.n);
}

static bool has_result(const struct event *event, const char *result) {
    return event->result && strcmp(event->result, result) == 0;
}

static int priority_of_end(const struct event *event) {
    if (has_result(event, "success") || has_result(event, "stopped"))
        return LOG_INFO;
    return event->has_caller && !has_result(event, "guard-died") ? LOG_NOTICE : LOG_WARNING; /* then `berth run` is dead, too */
}

int event_priority(const struct event *event) {
    switch (event->type) {
    case EVENT_EXITED:
    case EVENT_WITHDRAWN:
        return priority_of_end(event);
    case EVENT_REFUSED:
        return event->has_caller ? LOG_INFO : LOG_WARNING;
    default:
        return table[event->type].priority;
    }
}

const char *event_name(enum event_type type) {
    return table[type].name;
}

const char *event_message_id(enum event_type type) {
    return table[type].message_id;
}

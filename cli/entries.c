/* SPDX-License-Identifier: MIT */
#include "cli/entries.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

/* The fields that are texts, and where they go. */
static const struct {
    const char *field;
    size_t offset;
} texts[] = {
    {"BERTH_EVENT", offsetof(struct entry, event)},   {"BERTH_HOST", offsetof(struct entry, host)},
    {"BERTH_JOB", offsetof(struct entry, job)},       {"BERTH_RUN", offsetof(struct entry, run)},
    {"BERTH_POOLS", offsetof(struct entry, pools)},   {"BERTH_RESULT", offsetof(struct entry, result)},
    {"BERTH_REASON", offsetof(struct entry, reason)}, {"BERTH_LIMITS", offsetof(struct entry, limits)},
    {"_BOOT_ID", offsetof(struct entry, boot)},       {"BERTH_NAMESPACE", offsetof(struct entry, namespace)},
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

/* A number that is none, or above all reason, is not there. */
static int get_number(struct journal_reader *r, const char *field, int64_t absent, int64_t *ret) {
    _cleanup_free_ char *text = NULL;
    uint64_t value;
    int k = journal_reader_get(r, field, &text);

    *ret = text && number_parse(text, INT64_MAX, &value) == 0 ? (int64_t) value : absent;
    return k;
}

static int get_numbers(struct journal_reader *r, struct entry *e) {
    int64_t token = 0, ticket = 0, clock = 0, seq = 0;
    int k = get_number(r, "BERTH_TOKEN", 0, &token);

    k = k < 0 ? k : get_number(r, "BERTH_TICKET", 0, &ticket);
    k = k < 0 ? k : get_number(r, "BERTH_CLOCK", 0, &clock);
    k = k < 0 ? k : get_number(r, "BERTH_SEQ", 0, &seq);
    k = k < 0 ? k : get_number(r, "BERTH_UID", -1, &e->uid);
    k = k < 0 ? k : get_number(r, "BERTH_POSITION", 0, &e->position);
    k = k < 0 ? k : get_number(r, "BERTH_WAIT_MS", -1, &e->wait_ms);
    k = k < 0 ? k : get_number(r, "BERTH_RUN_MS", -1, &e->run_ms);
    k = k < 0 ? k : get_number(r, "BERTH_HEAD_START_MS", -1, &e->head_start_ms);
    k = k < 0 ? k : get_number(r, "BERTH_EXIT_CODE", -1, &e->exit_code);
    k = k < 0 ? k : get_number(r, "BERTH_SIGNAL", -1, &e->signal);
    e->token = (uint64_t) token;
    e->ticket = (uint64_t) ticket;
    e->clock = (uint64_t) clock;
    e->seq = (uint64_t) seq;
    return k;
}

static int get_process(struct journal_reader *r, struct entry *e) {
    _cleanup_free_ char *machine = NULL, *pid = NULL, *lease_lost = NULL;
    int k = journal_reader_get(r, "_MACHINE_ID", &machine);

    k = k < 0 ? k : journal_reader_get(r, "_PID", &pid);
    k = k < 0 ? k : journal_reader_get(r, "BERTH_ON_LEASE_LOST", &lease_lost);
    if (k < 0)
        return k;
    e->continues = lease_lost && strcmp(lease_lost, "continue") == 0;
    if (asprintf(&e->process, "%s/%s/%s", machine ? machine : "", e->boot ? e->boot : "", pid ? pid : "") < 0) {
        e->process = NULL;
        return -ENOMEM;
    }
    return 0;
}

static int fill(struct journal_reader *r, struct entry *e) {
    int k = 0;

    for (size_t i = 0; k >= 0 && i < ELEMENTSOF(texts); i++)
        k = journal_reader_get(r, texts[i].field, text_at(e, i));
    if (k >= 0 && !e->host && !(e->host = strdup("")))
        k = -ENOMEM;
    k = k < 0 ? k : get_numbers(r, e);
    k = k < 0 ? k : get_process(r, e);
    k = k < 0 ? k : journal_reader_time(r, &e->time);
    return k < 0 ? k : journal_reader_cursor(r, &e->cursor);
}

static struct entry *entries_grow(struct entries *e) {
    if (e->n == e->allocated) {
        size_t allocated = e->allocated > 0 ? 2 * e->allocated : 256;
        struct entry *grown = reallocarray(e->items, allocated, sizeof(*grown));

        if (!grown)
            return NULL;
        e->items = grown;
        e->allocated = allocated;
    }
    e->items[e->n] = (struct entry) {.wait_ms = -1, .run_ms = -1, .head_start_ms = -1, .exit_code = -1, .signal = -1, .uid = -1};
    return &e->items[e->n];
}

static int take_entry(struct entries *e, struct journal_reader *r) {
    struct entry *entry = entries_grow(e);
    int k;

    if (!entry)
        return -ENOMEM;
    k = fill(r, entry);
    if (k < 0 || !entry->event) /* berthd's own words have no event */
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

static int copy_text(char **to, const char *from) {
    *to = from ? strdup(from) : NULL;
    return from && !*to ? -ENOMEM : 0;
}

int entries_add(struct entries *e, const struct entry *entry) {
    struct entry *to = entries_grow(e), from = *entry;
    int k = 0;

    if (!to)
        return -ENOMEM;
    *to = from;
    for (size_t i = 0; i < ELEMENTSOF(texts); i++)
        k |= copy_text(text_at(to, i), *text_at(&from, i));
    k |= copy_text(&to->cursor, from.cursor ? from.cursor : "");
    k |= copy_text(&to->process, from.process ? from.process : "");
    if (!to->host)
        k |= copy_text(&to->host, "");
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

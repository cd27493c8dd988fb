/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "store/redis/store-redis.h"

#define MARKS_PART 200 /* in one report (R15) */
#define LOOK_PART 100  /* jobs in one look */

static void begin_turned(struct store_redis *store, struct redis_command *command, const char *what) {
    call_begin(store, command, REDIS_SCRIPT_TURNED);
    command_add(command, store->epoch.id);
    command_add(command, what);
}

static void add_i64(struct redis_command *command, int64_t number) {
    command_add_u64(command, number > 0 ? (uint64_t) number : 0);
}

/* --- asked for --- */

static void add_pool(struct store_redis *store, struct redis_command *command, const struct demand *demand) {
    command_add(command, demand->pool);
    command_add_u64(command, demand->permits);
    command_add_u64(command, limits_queue_limit(store, demand->pool));
}

void turns_add_request(struct store_redis *store, struct redis_command *command, const struct claim *claim,
                       const char *details) {
    static const char *const overlaps[] = {"skip", "queue", "allow"};

    command_add(command, claim->id);
    command_add(command, details);
    add_i64(command, claim->turn->due);
    command_add(command, overlaps[claim->turn->overlap]);
    if (claim->turn->again_usec == USEC_INFINITY)
        command_add(command, "-");
    else
        command_add_u64(command, claim->turn->again_usec / USEC_PER_MSEC);
    for (size_t i = 0; i < claim->n_demands; i++)
        if (strcmp(claim->demands[i].pool, claim->turn->pool) == 0)
            add_pool(store, command, &claim->demands[i]);
    for (size_t i = 0; i < claim->n_demands; i++)
        if (strcmp(claim->demands[i].pool, claim->turn->pool) != 0)
            add_pool(store, command, &claim->demands[i]);
}

/* NULL: nothing is known. */
static const char *known(const char *text) {
    return *text == '\0' || strcmp(text, "-") == 0 ? NULL : text;
}

/* 1: the line says why the turn is not this host's; 0: it is; -EBADMSG. */
static int parse_refusal(const struct reply_line *line, struct store_turn_answer *ret) {
    enum { WORD, FIRST = 3, SECOND, THIRD };
    const char *word = reply_line_field(line, WORD);
    uint64_t ms;

    *ret = (struct store_turn_answer){};
    if (strcmp(word, "taken") == 0) {
        ret->turn = STORE_TURN_TAKEN;
        ret->host = known(reply_line_field(line, SECOND));
        return 1;
    }
    if (strcmp(word, "skipped") == 0) {
        ret->turn = STORE_TURN_SKIPPED;
        ret->why = strcmp(reply_line_field(line, FIRST), "overlap") == 0 ? "overlap" : "queue-full";
        ret->run = strcmp(ret->why, "overlap") == 0 ? known(reply_line_field(line, SECOND)) : NULL;
        ret->host = known(reply_line_field(line, THIRD));
        return 1;
    }
    if (strcmp(word, "later") != 0 && strcmp(word, "early") != 0)
        return 0;
    if (reply_line_u64(line, FIRST, &ms) < 0)
        return -EBADMSG;
    ret->turn = strcmp(word, "later") == 0 ? STORE_TURN_LATER : STORE_TURN_EARLY;
    ret->after_usec = ms * USEC_PER_MSEC;
    return 1;
}

static void refuse(struct claim_entry *entry, const struct store_turn_answer *answer) {
    const struct store_listener *listener = &entry->store->base.listener;
    struct claim *claim = entry->claim;

    if (claim->state != CLAIM_STATE_ASKED)
        return; /* withdrawn: the reply to its release ends it */
    claim_table_remove(entry);
    claim->state = CLAIM_STATE_NONE;
    listener->on_turn_refused(claim, answer, listener->userdata);
}

int turns_handle_reply(struct claim_entry *entry, const struct reply_line *line) {
    enum { WORD, ATTEMPT = 9, CHAIN };
    struct claim_turn *turn = entry->claim->turn;
    struct store_turn_answer answer;
    uint64_t attempt;
    int r = parse_refusal(line, &answer);

    if (r < 0)
        return r;
    if (r > 0) {
        refuse(entry, &answer);
        return 1;
    }
    if (strcmp(reply_line_field(line, WORD), "grace") == 0) {
        entry->sent = false; /* asked again when grace is over: epoch_set_grace() */
        heartbeat_request_resend(entry->store);
        return 1;
    }
    if (strcmp(reply_line_field(line, WORD), "ok") != 0)
        return 0;
    if (reply_line_u64(line, ATTEMPT, &attempt) < 0 || attempt == 0 || attempt > UINT32_MAX ||
        strlen(reply_line_field(line, CHAIN)) >= sizeof(turn->chain))
        return -EBADMSG;
    turn->attempt = (uint32_t) attempt;
    (void) snprintf(turn->chain, sizeof(turn->chain), "%s", reply_line_field(line, CHAIN));
    return 0;
}

/* --- committed --- */

static void commit_on_reply(const struct redisReply *reply, void *userdata) {
    struct claim_entry *entry = userdata;
    struct store_redis *store = entry->store;
    const struct store_listener *listener = &store->base.listener;
    struct claim *claim = entry->claim;
    struct reply_line line;
    bool is_ours;

    claims_end_call(entry);
    FAILPOINT("commit-answered");
    if (!call_handle_common_reply(store, reply, PHASE_LIVE))
        return;
    if (reply_line_read(reply, &line) < 0) {
        call_bad_reply(store, "turned");
        return;
    }
    if (!entry->wants_commit || claim->state != CLAIM_STATE_HELD || entry->lease_lost)
        return;
    if (strcmp(reply_line_field(&line, 0), "waits") ==
        0) /* this host has a grant that Redis has lost: the sync decides */
        return;
    is_ours = strcmp(reply_line_field(&line, 0), "ok") == 0;
    entry->wants_commit = false;
    claim->turn->is_committed = is_ours;
    listener->on_committed(claim, is_ours, listener->userdata);
}

void turns_send_commit(struct claim_entry *entry) {
    struct store_redis *store = entry->store;
    _cleanup_command_ struct redis_command command = {0};

    if (!entry->wants_commit || entry->calls > 0 || entry->claim->state != CLAIM_STATE_HELD)
        return;
    begin_turned(store, &command, "commit");
    command_add(&command, entry->claim->id);
    if (call_send(store, &command, commit_on_reply, entry) == 0)
        claims_begin_call(entry);
    FAILPOINT("commit-sent");
}

void turns_commit(struct store *base, struct claim *claim) {
    struct claim_entry *entry = claim->store_data;

    if (!entry)
        return;
    entry->wants_commit = true;
    if (heartbeat_is_ready(store_redis_of(base)))
        turns_send_commit(entry);
}

/* --- ended, given back --- */

static void end_on_reply(const struct redisReply *reply, void *userdata) {
    struct claim_entry *entry = userdata;
    struct store_redis *store = entry->store;
    struct release_reply release;
    struct reply_line line;
    int r;

    claims_end_call(entry);
    FAILPOINT("turn-ended");
    if (!call_handle_common_reply(store, reply, PHASE_LIVE))
        return;
    r = reply_line_read(reply, &line);
    if (r >= 0)
        r = release_reply_parse(&line, &release);
    if (r >= 0)
        r = claims_handle_released(entry, &release);
    if (r < 0)
        call_bad_reply(store, "turned");
    else if (release.more > 0)
        heartbeat_send_extra(store);
}

void turns_send_end(struct claim_entry *entry) {
    struct store_redis *store = entry->store;
    const struct claim_turn *turn = entry->claim->turn;
    _cleanup_command_ struct redis_command command = {0};

    begin_turned(store, &command, entry->back_attempt > 0 ? "back" : "over");
    command_add(&command, entry->claim->id);
    if (entry->back_attempt > 0) {
        command_add_u64(&command, entry->back_attempt);
        command_add_u64(&command, entry->back_usec / USEC_PER_MSEC);
        command_add(&command, turn->chain[0] != '\0' ? turn->chain : "-");
    }
    if (call_send(store, &command, end_on_reply, entry) == 0)
        claims_begin_call(entry);
}

void turns_give_back(struct store *base, struct claim *claim, uint32_t attempt, usec_t delay_usec) {
    struct claim_entry *entry = claim->store_data;

    if (!entry || claim->state == CLAIM_STATE_RELEASING)
        return;
    entry->back_attempt = attempt > 0 ? attempt : 1; /* not known of a recovered claim, which is the first attempt */
    entry->back_usec = delay_usec;
    claims_release(base, claim);
}

void turns_lose(struct claim_entry *entry) {
    if (!entry->claim->turn)
        return;
    entry->back_attempt = 0;
    entry->claim->turn->attempt = 0;
}

/* --- passed --- */

struct turn_pass {
    struct store_redis *store;
    struct list link; /* on turns.passes */
    store_reply_fn fn;
    void *userdata;
};

static void pass_answer(struct turn_pass *pass, int result) {
    store_reply_fn fn = pass->fn;
    void *userdata = pass->userdata;

    list_unlink(&pass->link);
    free(pass);
    fn(result, userdata);
}

static void pass_on_reply(const struct redisReply *reply, void *userdata) {
    struct turn_pass *pass = userdata;
    struct reply_line line;

    if (!call_handle_common_reply(pass->store, reply, PHASE_LIVE))
        return; /* turns_reset() answers it */
    if (reply_line_read(reply, &line) < 0) {
        call_bad_reply(pass->store, "turned");
        return;
    }
    if (strcmp(reply_line_field(&line, 0), "missed") == 0)
        pass_answer(pass, 0);
    else
        pass_answer(pass, strcmp(reply_line_field(&line, 0), "taken") == 0 ? STORE_E_TAKEN : -EAGAIN);
}

int turns_pass(struct store *base, const struct store_pass *what, store_reply_fn fn, void *userdata) {
    struct store_redis *store = store_redis_of(base);
    _cleanup_command_ struct redis_command command = {0};
    struct turn_pass *pass;
    int r;

    if (!heartbeat_is_ready(store))
        return -ENOTCONN;
    pass = calloc(1, sizeof(*pass));
    if (!pass)
        return -ENOMEM;
    *pass = (struct turn_pass){.store = store, .fn = fn, .userdata = userdata};
    list_append(&store->turns.passes, &pass->link);
    begin_turned(store, &command, "pass");
    command_add(&command, what->pool);
    add_i64(&command, what->due);
    command_add(&command, what->id);
    r = call_send(store, &command, pass_on_reply, pass);
    if (r < 0) {
        list_unlink(&pass->link);
        free(pass);
    }
    return r;
}

/* --- open turns --- */

static bool is_declared(const struct store_redis *store, size_t i) {
    return store->limits.declared[i].pool.name[0] == '@';
}

void turns_handle_open(struct store_redis *store, const char *pool, uint64_t due, uint64_t attempt,
                       uint64_t delay_ms) {
    const struct store_listener *listener = &store->base.listener;
    struct store_open_turn turn = {.pool = pool,
                                   .due = (int64_t) due,
                                   .attempt = (uint32_t) attempt,
                                   .after_usec = delay_ms * USEC_PER_MSEC};

    if (due > INT64_MAX / USEC_PER_SEC || attempt == 0 || attempt > UINT32_MAX ||
        delay_ms > UINT64_MAX / USEC_PER_MSEC / 2)
        return;
    listener->on_turn_open(&store->base, &turn, listener->userdata);
}

/* {job, mark, {due, attempt, ms, chain}, ...} */
static void apply_look(struct store_redis *store, const struct redisReply *item) {
    enum { JOB, MARK, FIRST };
    enum { DUE, ATTEMPT, DELAY };
    const char *pool = reply_text(reply_at(item, JOB));
    const struct redisReply *open;

    for (size_t i = FIRST; pool && (open = reply_at(item, i)); i++) {
        uint64_t due, attempt, delay;

        if (reply_u64(reply_at(open, DUE), &due) == 0 && reply_u64(reply_at(open, ATTEMPT), &attempt) == 0 &&
            reply_u64(reply_at(open, DELAY), &delay) == 0)
            turns_handle_open(store, pool, due, attempt, delay);
    }
}

static void look_on_reply(const struct redisReply *reply, void *userdata) {
    enum { FIRST_JOB = 3 };
    struct store_redis *store = userdata;
    const struct redisReply *item;

    if (!call_handle_common_reply(store, reply, PHASE_LIVE))
        return;
    for (size_t i = FIRST_JOB; (item = reply_at(reply, i)); i++)
        apply_look(store, item);
}

void turns_look(struct store_redis *store) {
    usec_t now = clock_boottime();
    size_t i = 0, n_declared = store->limits.n_declared;

    if (store->base.state != STORE_STATE_READY ||
        (store->turns.looked > 0 && now - store->turns.looked < store->env.lease_usec))
        return;
    store->turns.looked = now;
    while (i < n_declared) {
        _cleanup_command_ struct redis_command command = {0};
        size_t n = 0;

        begin_turned(store, &command, "look");
        for (; i < n_declared && n < LOOK_PART; i++)
            if (is_declared(store, i)) {
                command_add(&command, store->limits.declared[i].pool.name);
                n++;
            }
        if (n > 0 && call_send(store, &command, look_on_reply, store) < 0)
            return;
    }
}

/* --- reported --- */

void turns_remember(struct store *base, const char *pool, int64_t due) {
    struct turns *turns = &store_redis_of(base)->turns;
    struct known_mark *marks;

    for (size_t i = 0; i < turns->n_marks; i++)
        if (strcmp(turns->marks[i].pool, pool) == 0) {
            if (due > turns->marks[i].due)
                turns->marks[i].due = due;
            return;
        }
    marks = reallocarray(turns->marks, turns->n_marks + 1, sizeof(*marks));
    if (!marks)
        return; /* other hosts know it, too */
    turns->marks = marks;
    (void) snprintf(marks[turns->n_marks].pool, sizeof(marks[0].pool), "%s", pool);
    marks[turns->n_marks++].due = due;
}

static void report_on_reply(const struct redisReply *reply, void *userdata) {
    (void) call_handle_common_reply(userdata, reply, PHASE_LIVE);
}

static void report_marks(struct store_redis *store) {
    for (size_t i = 0; i < store->turns.n_marks;) {
        _cleanup_command_ struct redis_command command = {0};

        begin_turned(store, &command, "marks");
        for (size_t n = 0; i < store->turns.n_marks && n < MARKS_PART; i++, n++) {
            command_add(&command, store->turns.marks[i].pool);
            add_i64(&command, store->turns.marks[i].due);
        }
        (void) call_send(store, &command, report_on_reply, store);
    }
}

static void add_turn(struct redis_command *command, const struct claim *claim) {
    const struct claim_turn *turn = claim->turn;

    command_add(command, claim->id);
    command_add(command, turn->is_committed ? "C" : "T");
    command_add(command, turn->pool);
    add_i64(command, turn->due);
    command_add_u64(command, turn->attempt > 0 ? turn->attempt : 1);
    if (turn->again_usec == USEC_INFINITY)
        command_add(command, "-");
    else
        command_add_u64(command, turn->again_usec / USEC_PER_MSEC);
    command_add(command, turn->chain[0] != '\0' ? turn->chain : "-");
}

static void report_turns(struct store_redis *store) {
    list_foreach (entry, &store->table.entries, struct claim_entry, link) {
        const struct claim_turn *turn = entry->claim->turn;
        _cleanup_command_ struct redis_command command = {0};

        if (!turn || (turn->attempt == 0 && !turn->is_committed) || entry->lease_lost ||
            claim_entry_is_finished(entry) || entry->claim->state == CLAIM_STATE_RELEASING)
            continue;
        begin_turned(store, &command, "report");
        add_turn(&command, entry->claim);
        (void) call_send(store, &command, report_on_reply, store);
    }
}

void turns_report(struct store_redis *store) {
    store->turns.looked = 0;
    if (!store->epoch.in_grace)
        return;
    report_marks(store);
    report_turns(store);
}

/* --- made and freed --- */

void turns_reset(struct store_redis *store) {
    store->turns.looked = 0;
    list_foreach_safe (pass, &store->turns.passes, struct turn_pass, link)
        pass_answer(pass, -ENOTCONN);
}

void turns_init(struct store_redis *store) {
    list_init(&store->turns.passes);
}

void turns_done(struct store_redis *store) {
    turns_reset(store);
    free(store->turns.marks);
}

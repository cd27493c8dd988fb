/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/redis-peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/harness/redis/redis-peer-answer.h"

#define CLAIMS_MAX 16
#define ID_LENGTH 32

struct peer_claim {
    char id[ID_LENGTH + 1];
    char state; /* H or W */
    unsigned long long ticket, token;
};

static struct {
    struct peer_claim claims[CLAIMS_MAX];
    size_t n;
    unsigned epoch;
    const char *serial; /* of the call that is answered */
    unsigned long long clock, count, last;
    char channel[128];
    char version[32]; /* "": of one that is new enough */
    const char *info; /* NULL: REDIS_PEER_INFO */
    struct {
        enum peer_change change;
        unsigned at;
        char text[256];
        size_t size;
    } next[PEER_KINDS];
} p;

void redis_peer_reset(void) {
    memset(&p, 0, sizeof(p));
    p.epoch = 1;
    p.clock = 1000000;
}

void redis_peer_set_version(const char *version) {
    (void) snprintf(p.version, sizeof(p.version), "%s", version);
}

void redis_peer_set_info(const char *info) {
    p.info = info;
}

void redis_peer_wipe(void) {
    p.n = 0;
    p.epoch++;
    p.last = 0;
}

void redis_peer_change(int kind, enum peer_change change, unsigned at, const char *text, size_t size) {
    p.next[kind].change = change;
    p.next[kind].at = at;
    p.next[kind].size = size < sizeof(p.next[kind].text) ? size : sizeof(p.next[kind].text) - 1;
    memcpy(p.next[kind].text, text, p.next[kind].size);
    p.next[kind].text[p.next[kind].size] = '\0';
}

/* --- what is known --- */

static const char *argument(const redisReply *command, size_t i) {
    return i < command->elements && command->element[i]->type == REDIS_REPLY_STRING ? command->element[i]->str : "";
}

static struct peer_claim *find(const char *id) {
    for (size_t i = 0; i < p.n; i++)
        if (strcmp(p.claims[i].id, id) == 0)
            return &p.claims[i];
    return NULL;
}

static void grant(struct peer_claim *c) {
    c->state = 'H';
    c->token = ++p.clock;
    p.last = c->token;
}

static struct peer_claim *add(const char *id) {
    struct peer_claim *c = find(id);

    if (c || p.n == CLAIMS_MAX)
        return c;
    c = &p.claims[p.n++];
    *c = (struct peer_claim) {.state = 'W', .ticket = ++p.clock};
    (void) snprintf(c->id, sizeof(c->id), "%s", id);
    return c;
}

/* --- the scripts --- */

static void answer_claim(struct peer_answer *a, const char *id) {
    unsigned long long before = p.last;
    bool known = find(id) != NULL;
    struct peer_claim *c = add(id);

    if (!c) {
        peer_answer_put(a, "refused %s 0 queue-full db", p.serial);
        return;
    }
    if (!known && p.n % 2 == 1) /* every other one waits */
        grant(c);
    peer_answer_put(a, "ok %s 0 %c %llu %llu %llu %u 5", p.serial, c->state, c->ticket, c->token, before, c->state == 'W' ? 1u : 0u);
}

static void answer_release(struct peer_answer *a, const char *id) {
    struct peer_claim *c = find(id);

    if (c) {
        *c = p.claims[--p.n];
        peer_answer_put(a, "ok %s 0 %llu %llu", p.serial, p.clock, p.last);
    } else {
        peer_answer_put(a, "ok %s 0", p.serial);
    }
}

/* Adds a list with the result of `each` for each claim in the command's arguments. */
static void answer_several(struct peer_answer *a, const redisReply *command, size_t from, size_t step, void (*each)(struct peer_answer *a, const char *id)) {
    peer_answer_put(a, "[");
    for (size_t i = from; i < command->elements; i += step) {
        struct peer_answer one = {0};

        each(&one, argument(command, i));
        for (char *at = strchr(one.text, ' '); at; at = strchr(at, ' '))
            *at = '_';
        peer_answer_put(a, " %s", one.text);
    }
    peer_answer_put(a, " ]");
}

static void answer_sync(struct peer_answer *a, const redisReply *command) {
    if (strcmp(argument(command, 10), "1") == 0)
        p.n = 0;
    peer_answer_put(a, "[ ok %s 0 0 %llu %llu [", p.serial, p.last, p.clock);
    for (size_t i = 12; i + 9 < command->elements; i += 10) {
        struct peer_claim *c = add(argument(command, i));

        if (!c)
            continue;
        if (argument(command, i + 1)[0] == 'H')
            c->state = 'H', c->token = strtoull(argument(command, i + 2), NULL, 10);
        else if (argument(command, i + 1)[0] == 'K')
            grant(c);
        peer_answer_put(a, " [ %s %c %llu %llu %u 5 '' ]", c->id, c->state, c->ticket, c->token, c->state == 'W' ? 1u : 0u);
    }
    peer_answer_put(a, " ] [ [ db 4 3 ] ] ]");
}

/* Puts the ids of the claims in this state. */
static void put_claims(struct peer_answer *a, char state) {
    peer_answer_put(a, " [");
    for (size_t i = 0; i < p.n; i++)
        if (p.claims[i].state == state)
            peer_answer_put(a, " %s", p.claims[i].id);
    peer_answer_put(a, " ]");
}

/* first: the claim's place in the command. */
static void put_records(struct peer_answer *a, const redisReply *command, size_t first) {
    peer_answer_put(a, " [");
    for (size_t i = first; i < command->elements; i++) {
        const struct peer_claim *c = find(argument(command, i));

        if (c)
            peer_answer_put(a, " %c_%llu_0123456789abcdef0123456789abcdef_db:1_%llu_5_0_77_%s_job_", c->state, c->token, c->ticket, c->id);
        else
            peer_answer_put(a, " ''");
    }
    peer_answer_put(a, " ]");
}

static void answer_inspect(struct peer_answer *a, const redisReply *command) {
    const char *what = argument(command, 5);
    size_t n_held = 0;

    for (size_t i = 0; i < p.n; i++)
        n_held += p.claims[i].state == 'H';
    peer_answer_put(a, "[ ok [ [ key error ] ]");
    if (strcmp(what, "sessions") == 0 && strcmp(argument(command, 6), "0") != 0)
        peer_answer_put(a, " %u 0 1000 5000 [ ] [ ] [ ] [ ]", p.epoch);
    else if (strcmp(what, "sessions") == 0)
        peer_answer_put(a, " %u 0 1000 5000 [ 0123456789abcdef0123456789abcdef ] [ %llu ] [ host_m_1.0_db=3,local=host ] [ 1 ]", p.epoch, p.count);
    else if (strcmp(what, "pool") == 0)
        peer_answer_put(a, " 3 3 4 [ 3 0 because ] %zu %zu 0 0 0123456789abcdef0123456789abcdef", n_held, p.n - n_held);
    else if (strcmp(what, "records") == 0)
        put_records(a, command, 8);
    else if (strcmp(what, "positions") == 0)
        peer_answer_put(a, " 1 1 1 1");
    peer_answer_put(a, " ]");
}

/* Lists of claims, and their records. */
static void answer_list(struct peer_answer *a, const redisReply *command) {
    const char *verb = argument(command, 0);

    if (strcmp(verb, "HMGET") == 0)
        put_records(a, command, 2);
    else if (strcmp(verb, "SSCAN") == 0)
        peer_answer_put(a, "[ 0"), put_claims(a, 'H'), peer_answer_put(a, " ]");
    else
        put_claims(a, 'W');
}

/* Adds overrides, ended sessions, and their claims and limits. */
#define NEWS "[ [ db %llu 2 0 somebody '' because ] ] [ [ 0123456789abcdef0123456789abcdef bee 900 ] ] " \
             "[ [ fedcba9876543210fedcba9876543210 bee job 00000000000000000000000000000001 db:1 800 900 ] ] [ [ db 3 900 ] ]"

static void answer_script(struct peer_answer *a, int script, const redisReply *command) {
    a->line = script == REDIS_SCRIPT_CLAIM || script == REDIS_SCRIPT_RELEASE;
    switch (script) {
    case REDIS_SCRIPT_HELLO:
        peer_answer_put(a, "[ ok %u 0 0 %llu 1 %llu [ ] [ [ db 2 4 1 ] ] [ ] [ ] [ ] %llu '' ]", p.epoch, ++p.count, p.clock, p.clock);
        break;
    case REDIS_SCRIPT_BYE: peer_answer_put(a, "[ ok %u 0 [ ] ]", p.epoch); break;
    case REDIS_SCRIPT_HEARTBEAT:
        a->line = ++p.count % 2 == 1;
        peer_answer_put(a, a->line ? "ok %s 0 0 %llu %llu %zu %llu" : "[ ok_%s_0_0_%llu_%llu_%zu_%llu", p.serial, p.count, p.last, p.n, p.clock);
        if (!a->line)
            peer_answer_put(a, "_%llu " NEWS " ]", p.clock, p.clock);
        break;
    case REDIS_SCRIPT_CLAIM: answer_claim(a, argument(command, 9)); break;
    case REDIS_SCRIPT_CLAIMS: answer_several(a, command, 11, 2, answer_claim); break;
    case REDIS_SCRIPT_RELEASE: answer_release(a, argument(command, 9)); break;
    case REDIS_SCRIPT_RELEASES: answer_several(a, command, 9, 1, answer_release); break;
    case REDIS_SCRIPT_SYNC: answer_sync(a, command); break;
    case REDIS_SCRIPT_OVERRIDE: peer_answer_put(a, "[ ok %s 0 %llu ]", p.serial, ++p.clock); break;
    case REDIS_SCRIPT_INSPECT: answer_inspect(a, command); break;
    case REDIS_SCRIPT_PROBE: peer_answer_put(a, "[ ok [ ] ]"); break;
    default: peer_answer_put(a, "[ ok %s 0 1 ]", p.serial); break;
    }
}

static int kind_of(const redisReply *command) {
    const char *verb = argument(command, 0);

    if (strcmp(verb, "HMGET") == 0 || strcmp(verb, "SSCAN") == 0 || strcmp(verb, "ZRANGE") == 0)
        return PEER_LIST;
    if (strcmp(verb, "EVALSHA") == 0)
        for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++)
            if (strcmp(argument(command, 1), redis_script_sha(i)) == 0)
                return (int) i;
    return strcmp(verb, "INFO") == 0 ? PEER_INFO : strcmp(verb, "SCRIPT") == 0 ? PEER_LOAD : strcmp(verb, "SSUBSCRIBE") == 0 ? PEER_SUBSCRIBE
           : PEER_OTHER;
}

/* Replies that every second script is known. */
static void answer_scripts(struct peer_answer *a, const redisReply *command) {
    if (strcmp(argument(command, 1), "EXISTS") != 0) {
        peer_answer_put(a, "%s", redis_script_sha(0)); /* nobody looks at it */
        return;
    }
    peer_answer_put(a, "[");
    for (size_t i = 2; i < command->elements; i++)
        peer_answer_put(a, " %zu", i % 2);
    peer_answer_put(a, " ]");
}

/* Lines in the list of a reply. */
/* As redis-server 6.2 does it; 0: as a newer one. */
static size_t answer_as_old(const redisReply *command, int kind, char *buffer, size_t size) {
    char info[128];

    if (p.version[0] == '\0' || strtoul(p.version, NULL, 10) >= 7)
        return 0;
    if (kind == PEER_INFO && command->elements == 2) {
        int n = snprintf(info, sizeof(info), "# Server\r\nredis_version:%s\r\n", p.version);

        return (size_t) snprintf(buffer, size, "$%d\r\n%s\r\n", n, info);
    }
    if (kind == PEER_INFO)
        return (size_t) snprintf(buffer, size, "-ERR syntax error\r\n");
    if (kind == PEER_LOAD && strcmp(argument(command, 1), "LOAD") == 0)
        return (size_t) snprintf(buffer, size,
                                 "-ERR Error compiling script (new function): user_script:1: "
                                 "unexpected symbol near '#'\r\n");
    return 0;
}

size_t redis_peer_answer(const redisReply *command, char *buffer, size_t size) {
    int kind = kind_of(command);
    struct peer_answer a = {0};
    size_t old = answer_as_old(command, kind, buffer, size);

    if (old > 0)
        return old;

    p.serial = argument(command, 8);
    switch (kind) {
    case PEER_INFO: peer_answer_put(&a, "%s", p.info ? p.info : REDIS_PEER_INFO); break;
    case PEER_LOAD: answer_scripts(&a, command); break;
    case PEER_SUBSCRIBE:
        (void) snprintf(p.channel, sizeof(p.channel), "%s", argument(command, 1));
        peer_answer_put(&a, "[ ssubscribe %s 1 ]", p.channel);
        break;
    case PEER_OTHER: peer_answer_put(&a, "OK"); break;
    case PEER_LIST: answer_list(&a, command); break;
    default: answer_script(&a, kind, command); break;
    }
    peer_answer_split(&a);
    if (kind < REDIS_SCRIPTS)
        peer_answer_open_lines(&a);
    if (p.next[kind].change != PEER_AS_IT_IS) {
        enum peer_change how = p.next[kind].change;

        p.next[kind].change = PEER_AS_IT_IS;
        if (how == PEER_LOST)
            return 0;
        if (how == PEER_RAW || how == PEER_ERROR) {
            int n = snprintf(buffer, size, how == PEER_RAW ? "%s\r\n" : "-%s\r\n", p.next[kind].text);

            return n < 0 || (size_t) n >= size ? 0 : (size_t) n;
        }
        peer_answer_change(&a, how, p.next[kind].at, p.next[kind].text);
    }
    return peer_answer_write(&a, buffer, size);
}

size_t redis_peer_push(unsigned verb, unsigned claim, char *buffer, size_t size) {
    static const char *const verbs[] = {"granted", "revoked", "parked", "queued"};
    struct peer_claim *c = p.n > 0 ? &p.claims[claim % p.n] : NULL;
    unsigned long long before = p.last;
    char text[256];
    int n;

    if (!p.channel[0])
        return 0;
    if (c && verb % 4 == 0)
        grant(c);
    if (verb % 4 < 2)
        snprintf(text, sizeof(text), "%s %u %llu %llu %s %s 5 0", verbs[verb % 4], p.epoch, before,
                 verb % 4 ? ++p.clock : p.last, c ? c->id : "?", verb % 4 ? "gone" : "7");
    else
        snprintf(text, sizeof(text), "%s %u 2 %llu %s 7 5", verbs[verb % 4], p.epoch, p.clock, c ? c->id : "?");
    n = snprintf(buffer, size, "*3\r\n$8\r\nsmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(p.channel), p.channel, strlen(text), text);
    return n < 0 || (size_t) n >= size ? 0 : (size_t) n;
}

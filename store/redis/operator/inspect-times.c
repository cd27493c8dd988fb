/* SPDX-License-Identifier: MIT */

/* The times that hosts publish (publish.h). This step is the last one, because it needs the hosts of all claims. */

#include <stdlib.h>
#include <string.h>

#include "store/redis/operator/inspect-internal.h"
#include "store/redis/store-redis.h"

#define HOSTS_MAX 200

enum { FIRST_TIMES = INSPECT_FIRST };

static void note_host(struct inspection *i, const char *host) {
    struct snapshot *s = i->snapshot;

    if (host[0] == '\0' || s->n_times == HOSTS_MAX || strcmp(host, i->store->env.host) == 0)
        return;
    for (size_t at = 0; at < s->n_times; at++)
        if (strcmp(s->times[at].host, host) == 0)
            return;
    (void) snprintf(s->times[s->n_times++].host, sizeof(s->times->host), "%s", host);
}

int inspect_collect_hosts(struct inspection *i) {
    struct snapshot *s = i->snapshot;

    if (!i->times)
        return 0;
    s->times = calloc(HOSTS_MAX, sizeof(*s->times));
    if (!s->times)
        return -ENOMEM;
    for (size_t at = 0; at < s->n_pools; at++) {
        const struct snapshot_pool *p = &s->pools[at];

        if (!inspect_is_named(i, p->name))
            continue;
        for (size_t k = 0; k < p->n_holders; k++)
            note_host(i, p->holders[k].host);
        for (size_t k = 0; k < p->n_queue; k++)
            note_host(i, p->queue[k].host);
    }
    i->times_at = 0;
    return (int) s->n_times;
}

void inspect_add_hosts(struct inspection *i, struct redis_command *command) {
    const struct snapshot *s = i->snapshot;

    for (size_t k = i->times_at; k < s->n_times && k < i->times_at + INSPECT_TIMES_MAX; k++)
        command_add(command, s->times[k].host);
}

/* Reads texts, and leaves out those that are too long, which any client may have written. */
int inspect_read_times(struct inspection *i, const struct redisReply *reply) {
    struct snapshot *s = i->snapshot;

    for (size_t k = 0; k < INSPECT_TIMES_MAX && i->times_at < s->n_times; k++, i->times_at++) {
        const char *text = reply_text(reply_at(reply, FIRST_TIMES + k));
        struct snapshot_times *times = &s->times[i->times_at];

        if (!text)
            return -EBADMSG;
        if (text[0] == '\0' || strlen(text) >= STORE_PUBLISHED_MAX)
            continue;
        times->text = strdup(text);
        if (!times->text)
            return -ENOMEM;
    }
    return i->times_at < s->n_times ? 1 : 0;
}

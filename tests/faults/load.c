/* SPDX-License-Identifier: MIT */
#include "tests/faults/load.h"
#include "tests/faults/due.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"

#define PAUSE (25 * USEC_PER_MSEC) /* between two new runs */
#define JOBS 6
#define PATTERN "tenant/*"

/* --- hosts --- */

static const struct {
    const char *pools, *options, *demands;
    int exit;
} jobs[JOBS] = {
    {"\"db\"", "\"--for\", \"700\", \"--exit\", \"5\"", "db", 5},
    {"\"db:2\"", "\"--for\", \"300\", \"--ignore-term\"", "db:2", 0},
    {"\"db\", \"net\"", "\"--for\", \"500\", \"--child\"", "db,net", 0},
    {"\"net\"", "\"--for\", \"0\", \"--exit\", \"7\"", "net", 7},
    {"\"tenant/a\"", "\"--for\", \"200\", \"--exit\", \"6\"", "tenant/a", 6},
    {"\"tenant/b\", \"db\"", "\"--for\", \"100\", \"--ignore-term\"", "tenant/b,db", 0},
};

static const char *const keys[] = {"tenant/a", "tenant/b", "tenant/c"};

int load_exit_of(const char *job) {
    return job[0] == 'j' && job[1] >= '0' && job[1] < '0' + JOBS && !job[2] ? jobs[job[1] - '0'].exit : 0; /* "long": 0 */
}

const char *load_pools(unsigned reload) {
    static char text[256];

    snprintf(text, sizeof(text),
             "pool \"db\" { limit = %d description = \"%u\" }\npool \"net\" { limit = %d }\n"
             "pool \"" PATTERN "\" { limit = %d }\n",
             LOAD_DB, reload, LOAD_NET, LOAD_TENANT);
    return text;
}

void load_write_config(struct load *l, size_t host) {
    struct load_host *h = &l->hosts[host];
    char text[8192];
    int n = snprintf(text, sizeof(text), "%s", load_pools(h->reload));

    for (size_t i = 0; i < JOBS; i++)
        n += snprintf(text + n, sizeof(text) - (size_t) n,
                      "job \"j%zu\" { command = {\"%s/tests/tools/witness\", \"%s\", \"--id\", \"@run\", %s} pools = {%s} overlap = \"allow\" "
                      "output = \"null\" stop-timeout = \"300ms\" }\n",
                      i, cluster.build, cluster.witness, jobs[i].options, jobs[i].pools);
    n += snprintf(text + n, sizeof(text) - (size_t) n,
                    "job \"long\" { command = {\"%s/tests/tools/witness\", \"%s\", \"--id\", \"@run\", \"--for\", \"4000\", \"--child\"} "
                    "pools = {\"db\"} head-start = \"1h\" overlap = \"allow\" output = \"null\" stop-timeout = \"300ms\" }\n",
                    cluster.build, cluster.witness);
    if (h->has_schedules)
        (void) snprintf(text + n, sizeof(text) - (size_t) n, "%s", due_jobs());
    host_set_config(h->host, "%s", text);
}

void load_reload(struct load *l, size_t host) {
    struct load_host *h = &l->hosts[host];

    h->reload++;
    load_write_config(l, host);
    host_signal(h->host, SIGHUP);
}

void load_touch(struct load *l, size_t host, usec_t until) {
    struct load_host *h = &l->hosts[host];

    if (h->n_touched == ELEMENTSOF(h->touched))
        return;
    h->touched[h->n_touched].from = clock_boottime();
    h->touched[h->n_touched++].until = until;
}

static void note_limit(struct load *l, const char *pool, unsigned limit) {
    struct judge_limit *entry;

    if (l->n_limits == ELEMENTSOF(l->limits))
        return;
    entry = &l->limits[l->n_limits++];
    entry->at = clock_boottime();
    entry->limit = limit;
    snprintf(entry->pool, sizeof(entry->pool), "%s", pool);
}

/* The limit of a pattern is that of each key. */
static void note_limits(struct load *l, const char *pool, unsigned limit) {
    size_t n = strcmp(pool, PATTERN) == 0 ? ELEMENTSOF(keys) : 0;

    if (n == 0)
        note_limit(l, pool, limit);
    for (size_t i = 0; i < n; i++)
        note_limit(l, keys[i], limit);
}

/* Sets the limit on the first host that replies. A higher limit counts from before the call, a lower one
 * from the reply on. */
bool load_set_limit(struct load *l, const char *pool, unsigned limit) {
    const char *first = strcmp(pool, PATTERN) == 0 ? keys[0] : pool;
    unsigned before = 0;

    for (size_t k = 0; k < l->n_limits; k++)
        if (strcmp(l->limits[k].pool, first) == 0)
            before = l->limits[k].limit;
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        struct child *c;
        bool done;

        if (l->hosts[i].down || l->hosts[i].frozen || !l->hosts[i].host->berthd || l->hosts[i].host->berthd->ended)
            continue;
        if (limit > before)
            note_limits(l, pool, limit);
        c = berth_start(l->hosts[i].host, "limit %s %u", pool, limit);
        done = child_await(c, 2 * USEC_PER_SEC) && c->exit_code == 0;
        child_free(c);
        if (done && limit < before)
            note_limits(l, pool, limit);
        if (done)
            return true;
    }
    return false;
}

void load_excuse(struct load *l, usec_t from, uint64_t token) {
    if (l->n_excuses < ELEMENTSOF(l->excuses))
        l->excuses[l->n_excuses++] = (struct judge_excuse) {from, token};
}

void load_up(struct load *l, uint64_t seed, bool has_schedules) {
    static const char *const names[LOAD_HOSTS] = {"ant", "bee", "cow"};

    l->random = seed;
    l->width = 9;
    l->has_schedules = has_schedules;
    cluster.lease = "2s";
    cluster.heartbeat = "300ms";
    note_limit(l, "db", LOAD_DB);
    note_limit(l, "net", LOAD_NET);
    note_limits(l, PATTERN, LOAD_TENANT);
    note_limit(l, "@d-any", 1); /* tests/faults/due.h */
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        l->hosts[i].host = host_add(names[i], "%s", load_pools(0));
        l->hosts[i].has_schedules = has_schedules;
        load_write_config(l, i);
    }
}

/* --- runs --- */

static struct load_host *choose_host(struct load *l, size_t *ret) {
    size_t first = draw_between(&l->random, 0, LOAD_HOSTS - 1);

    if (l->focus && draw_between(&l->random, 0, 1) == 0)
        first = 0;
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        struct load_host *h = &l->hosts[(first + i) % LOAD_HOSTS];

        if (h->down || h->frozen || !h->host->berthd || h->host->berthd->ended)
            continue;
        *ret = (first + i) % LOAD_HOSTS;
        return h;
    }
    return NULL;
}

static void begin_job(struct load *l, struct load_item *item, struct host *h) {
    size_t which = draw_between(&l->random, 0, JOBS - 1);

    item->job = true;
    item->expected = jobs[which].exit;
    CU_ASSERT(demands_parse(jobs[which].demands, &item->pools) == 0);
    item->leaves_child = which == 2;
    item->child = berth_start(h, "start j%zu --wait", which);
}

/* Some commands end at once, so that their release races with heartbeats (swarthy/redis-semaphore#205,
 * redisson/redisson#7272). */
static void begin_run(struct load *l, struct load_item *item, struct host *h) {
    static const char *const demands[] = {"db:1",  "db:2",       "net:1",      "db:1,net:1",     "db:1",
                                          "net:1", "tenant/a:1", "tenant/c:1", "db:1,tenant/b:1"};
    static const char *const options[] = {"", "--ignore-term", "", "--exit 3"};
    size_t which = draw_between(&l->random, 0, ELEMENTSOF(demands) - 1), option = draw_between(&l->random, 0, ELEMENTSOF(options) - 1);
    unsigned msec = draw_between(&l->random, 0, 4) == 0 ? 0 : (unsigned) draw_between(&l->random, 50, 900);
    char pools[64] = "";
    size_t n = 0;

    CU_ASSERT(demands_parse(demands[which], &item->pools) == 0);
    item->expected = option == 3 ? 3 : 0;
    for (size_t i = 0; i < item->pools.n; i++)
        n += (size_t) snprintf(pools + n, sizeof(pools) - n, "-p %s:%u ", item->pools.items[i].pool,
                               item->pools.items[i].permits);
    item->child = berth_start(h, "run %s --name %s -- %s --id %s --for %u %s", pools, item->id,
                              cluster.command, item->id, msec, options[option]);
}

static struct load_item *new_item(struct load *l, size_t host) {
    struct load_item *item = &l->items[l->n];

    snprintf(item->id, sizeof(item->id), "r%zu", l->n++);
    item->from = clock_boottime();
    item->host = host;
    item->status = -1;
    return item;
}

static void begin(struct load *l) {
    size_t host = 0;
    struct load_host *h = choose_host(l, &host);
    struct load_item *item;

    if (!h)
        return;
    item = new_item(l, host);
    if (draw_between(&l->random, 0, l->focus ? 1 : 3) == 0)
        begin_job(l, item, h->host);
    else
        begin_run(l, item, h->host);
}

static struct load_item *new_first_item(struct load *l, size_t host) {
    struct load_item *item = new_item(l, host);

    CU_ASSERT(demands_parse("db:1", &item->pools) == 0);
    item->head_start = 3600 * USEC_PER_SEC;
    return item;
}

void load_begin_long(struct load *l, size_t host, unsigned msec) {
    struct load_host *h = &l->hosts[host];
    struct load_item *item;

    if (h->down || h->frozen || !h->host->berthd || h->host->berthd->ended || l->n + 2 > LOAD_ITEMS)
        return;
    item = new_first_item(l, host);
    item->child = berth_start(h->host, "run -p db --head-start 1h --name %s -- %s --id %s --for %u %s", item->id, cluster.command, item->id,
                              msec, draw_between(&l->random, 0, 1) ? "--ignore-term" : "");
    item = new_first_item(l, host);
    item->job = true;
    item->child = berth_start(h->host, "start long --wait");
}

/* `berth start` prints the id of the run. */
static void note_run(struct load_item *item) {
    const char *text = child_text(item->child, 1);

    if (strcspn(text, "\n") == sizeof(item->run) - 1)
        snprintf(item->run, sizeof(item->run), "%s", text);
}

static size_t reap(struct load *l) {
    size_t open = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct load_item *item = &l->items[i];

        if (!item->child)
            continue;
        if (!item->child->ended) {
            open++;
            continue;
        }
        item->until = clock_boottime();
        item->status = item->child->signal ? 128 + item->child->signal : item->child->exit_code;
        item->killed = item->child->signal != 0;
        if (item->job)
            note_run(item);
        item->child = child_free(item->child);
    }
    return open;
}

static size_t turn(struct load *l, usec_t until) {
    usec_t now = clock_boottime();
    size_t open;

    child_turn(until < now + 5 * USEC_PER_MSEC ? until : now + 5 * USEC_PER_MSEC);
    witness_watch_turn(&l->watch, cluster.witness);
    open = reap(l);
    if (l->closed || open >= l->width || clock_boottime() < l->next || l->n == LOAD_ITEMS)
        return open;
    begin(l);
    l->next = clock_boottime() + PAUSE;
    return open;
}

void load_turn(struct load *l, usec_t until) {
    do
        (void) turn(l, until);
    while (clock_boottime() < until);
}

size_t load_drain(struct load *l, usec_t within) {
    usec_t until = clock_boottime() + within;
    size_t open;

    l->closed = true;
    while ((open = turn(l, until)) > 0 && clock_boottime() < until)
        ;
    for (size_t i = 0; within > 0 && i < l->n; i++)
        if (l->items[i].child)
            printf("%s on %s has not ended, status of its command would be %d: %s\n", l->items[i].id, l->hosts[l->items[i].host].host->name,
                   l->items[i].expected, child_text(l->items[i].child, 2));
    return open;
}

void load_done(struct load *l) {
    for (size_t i = 0; i < l->n; i++)
        l->items[i].child = child_free(l->items[i].child);
    witness_watch_done(&l->watch);
}

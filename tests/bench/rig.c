/* SPDX-License-Identifier: MIT */
#include "tests/bench/rig.h"

#include "tests/harness/port.h"
#include "tests/harness/redis/tls.h"

#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>

#include "conf/settings.h"
#include "store/redis/store-redis.h"

#define START_AT_ONCE 100 /* hosts that connect at the same time when the rig goes up */
#define ASK_AT_ONCE 4000
#define HOSTS_A_LOOP 100
#define LOOPS_AT_ONCE 64

const struct store_pool rig_pools[RIG_POOLS] = {{.name = "busy", .limit = 10000000, .queue_limit = 10000000},
                                                {.name = "full", .limit = RIG_FULL_LIMIT, .queue_limit = 10000000}};

void rig_fail(const char *format, ...) {
    va_list ap;

    va_start(ap, format);
    fputs("bench: ", stdout);
    vprintf(format, ap);
    putchar('\n');
    va_end(ap);
    fflush(stdout);
    exit(1);
}

/* --- the listener --- */

static void on_waiting(struct claim *c, void *userdata _unused_) {
    struct slot *s = list_entry(c, struct slot, claim);

    s->host->rig->n_waiting++;
    if (s->host->rig->on_waiting)
        s->host->rig->on_waiting(s);
}

static void on_granted(struct claim *c, void *userdata _unused_) {
    struct slot *s = list_entry(c, struct slot, claim);

    s->host->rig->n_granted++;
    if (s->host->rig->on_granted)
        s->host->rig->on_granted(s);
}

static void on_refused(struct claim *c _unused_, enum store_refusal refusal, const char *pool, void *userdata _unused_) {
    rig_fail("refused: %s %s", store_refusal_name(refusal), pool);
}

static void on_lost(struct claim *c _unused_, enum store_loss loss, void *userdata _unused_) {
    rig_fail("a claim was lost (%d)", (int) loss);
}

static void on_released(struct claim *c, void *userdata _unused_) {
    struct slot *s = list_entry(c, struct slot, claim);

    s->host->rig->n_released++;
    if (s->host->rig->on_released)
        s->host->rig->on_released(s);
}

static void on_deadline(struct store *s _unused_, usec_t deadline _unused_, void *userdata) {
    struct rig_host *h = userdata;
    usec_t now = clock_boottime();

    if (h->beat > 0 && now - h->beat > h->worst_gap)
        h->worst_gap = now - h->beat;
    h->beat = now;
}

static void on_state(struct store *s _unused_, enum store_state state _unused_, void *userdata _unused_) {
}

/* --- up and down --- */

void rig_touch(struct rig_host *h) {
    h->loop->touched = true;
}

static void make_loops(struct rig *g) {
    g->n_loops = (g->n_hosts + HOSTS_A_LOOP - 1) / HOSTS_A_LOOP;
    g->loops = calloc(g->n_loops, sizeof(*g->loops));
    g->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < g->n_loops; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u64 = i};

        if (!g->loops || sd_event_new(&g->loops[i].event) < 0 ||
            epoll_ctl(g->epoll, EPOLL_CTL_ADD, sd_event_get_fd(g->loops[i].event), &e) < 0)
            rig_fail("no event loop");
    }
}

static void make_host(struct rig *g, size_t i) {
    const struct store_listener listener = {on_waiting, on_granted, on_refused, on_lost, on_released, on_deadline, on_state, .userdata = &g->hosts[i]};
    struct redis_settings settings = {.unix_path = g->server.socket, .timeout_usec = 20 * USEC_PER_SEC,
                                      .connect_timeout_usec = 20 * USEC_PER_SEC};
    if (g->server.tls_port > 0) { /* BERTH_TEST_TLS */
        settings.unix_path = NULL;
        settings.host = (char *) "127.0.0.1";
        settings.port = (uint16_t) g->server.tls_port;
        settings.tls = (struct tls_settings) {.is_used = true, .ca = tls_place_path(tls_shared_place(), "ca.crt")};
    }
    if (g->port > 0) {
        settings.unix_path = NULL;
        settings.host = (char *) "127.0.0.1";
        settings.port = (uint16_t) g->port;
    }
    if (g->options.has_default_timeouts) {
        settings.timeout_usec = g->options.lease_usec / 12;
        settings.connect_timeout_usec = g->options.lease_usec / 4;
    }
    usec_t lease = g->options.lease_usec > 0 ? g->options.lease_usec : 3600 * USEC_PER_SEC;
    char name[32];
    struct store_redis_options options = {.redis = &settings, .host = name, .namespace = "bench", .version = "1",
                                          .lease_usec = lease, .heartbeat_usec = lease / 6};

    snprintf(name, sizeof(name), "%s-%05zu", g->options.prefix ? g->options.prefix : "host", i);
    g->hosts[i].rig = g;
    g->hosts[i].loop = &g->loops[i / HOSTS_A_LOOP];
    rig_touch(&g->hosts[i]);
    if (store_redis_new(&g->hosts[i].store, g->hosts[i].loop->event, g->events, &options, &listener) < 0 ||
        store_declare(g->hosts[i].store, g->options.pools, g->options.n_pools, false) < 0)
        rig_fail("no memory for host %zu", i);
}

static void on_reply(int r, void *userdata) {
    *(int *) userdata = r;
}

static void end_grace(struct rig *g) {
    int reply = -1;

    RIG_UNTIL(g, g->hosts[0].store->state != STORE_STATE_AWAY);
    if (g->hosts[0].store->state == STORE_STATE_READY)
        return;
    if (store_end_grace(g->hosts[0].store, on_reply, &reply) < 0)
        rig_fail("cannot end grace");
    rig_touch(&g->hosts[0]);
    RIG_UNTIL(g, reply == 0 && g->hosts[0].store->state == STORE_STATE_READY);
}

size_t rig_count_state(const struct rig *g, enum store_state state) {
    size_t n = 0;

    for (size_t i = 0; i < g->n_hosts; i++)
        n += g->hosts[i].store->state == state;
    return n;
}

/* With BENCH_TCP hosts connect by TCP, as they do by TLS. */
static void start_server(struct rig *g) {
    const char *words[16] = {NULL};
    static char port[8]; /* kept for a restart */
    size_t n = 0;

    for (; g->options.redis && g->options.redis[n]; n++)
        words[n] = g->options.redis[n];
    if (getenv("BENCH_TCP")) {
        g->port = port_reserve();
        (void) snprintf(port, sizeof(port), "%u", g->port);
        words[n++] = "--port";
        words[n] = port;
    }
    if (redis_server_start(&g->server, words) < 0)
        rig_fail("no redis-server");
}

static void start_hosts(struct rig *g) {
    size_t ready = 0;

    g->hosts = calloc(g->n_hosts, sizeof(*g->hosts));
    if (!g->hosts || journal_new(&g->journal, "bench") < 0 || events_new(&g->events, g->journal, "bench", "bench") < 0)
        abort();
    make_loops(g);
    for (size_t i = 0; i < g->n_hosts; i++)
        make_host(g, i);
    for (size_t i = 0; i < g->n_hosts; i++) {
        if (store_start(g->hosts[i].store) < 0)
            rig_fail("cannot start host %zu", i);
        rig_touch(&g->hosts[i]);
        if (i == 0)
            end_grace(g);
        for (; ready + START_AT_ONCE < i; ready++)
            RIG_UNTIL(g, g->hosts[ready].store->state == STORE_STATE_READY);
    }
    for (; ready < g->n_hosts; ready++)
        RIG_UNTIL(g, g->hosts[ready].store->state == STORE_STATE_READY);
}

void rig_up(struct rig *g, const struct rig_options *options) {
    *g = (struct rig) {.options = *options, .n_hosts = options->n_hosts};
    start_server(g);
    start_hosts(g);
}

void rig_join(struct rig *g, const struct rig *of, const struct rig_options *options) {
    *g = (struct rig) {.options = *options, .n_hosts = options->n_hosts};
    memcpy(g->server.socket, of->server.socket, sizeof(g->server.socket));
    g->server.tls_port = of->server.tls_port;
    g->port = of->port;
    start_hosts(g);
}

void rig_down(struct rig *g) {
    for (size_t i = 0; i < g->n_hosts; i++)
        store_free(g->hosts[i].store);
    for (size_t i = 0; i < g->n_loops; i++)
        sd_event_unref(g->loops[i].event);
    free(g->loops);
    close_fd(g->epoll);
    events_free(g->events);
    journal_free(g->journal);
    free(g->hosts);
    redis_server_done(&g->server);
}

/* Runs all that is pending in a loop. The last turn, which finds nothing, arms the timers. */
static void drain(struct rig_loop *l) {
    int r;

    l->touched = false;
    while ((r = sd_event_run(l->event, 0)) > 0)
        ;
    if (r < 0)
        rig_fail("the event loop failed");
}

void rig_turn(struct rig *g, usec_t at_most) {
    struct epoll_event ready[LOOPS_AT_ONCE];
    int n;

    if (g->n_loops == 1) {
        if (sd_event_run(g->loops[0].event, at_most) < 0)
            rig_fail("the event loop failed");
        return;
    }
    for (size_t i = 0; i < g->n_loops; i++)
        if (g->loops[i].touched)
            drain(&g->loops[i]);
    n = epoll_wait(g->epoll, ready, LOOPS_AT_ONCE, (int) (at_most / USEC_PER_MSEC));
    for (int i = 0; i < n; i++)
        drain(&g->loops[ready[i].data.u64]);
}

void rig_run_for(struct rig *g, usec_t time) {
    usec_t end = clock_boottime() + time;

    for (usec_t now; (now = clock_boottime()) < end;)
        rig_turn(g, end - now);
}

void rig_forget_gaps(struct rig *g) {
    for (size_t i = 0; i < g->n_hosts; i++)
        g->hosts[i].worst_gap = 0;
}

/* --- claims --- */

struct slot *rig_slots(struct rig *g, size_t n, size_t host, const char *pool, uint32_t permits) {
    struct slot *slots = calloc(n > 0 ? n : 1, sizeof(*slots));

    if (!slots)
        abort();
    for (size_t i = 0; i < n; i++) {
        struct slot *s = &slots[i];

        s->host = &g->hosts[(host + i) % g->n_hosts];
        s->demand = (struct demand_ref) {pool, permits};
        s->claim.demands = &s->demand;
        s->claim.n_demands = 1;
        s->claim.pid = 4711;
        s->claim.name = "pg-dump";
        s->claim.id = s->id;
    }
    return slots;
}

static void say(struct slot *s) {
    if (s->host->rig->singly)
        batch_flush(store_redis_of(s->host->store));
    rig_touch(s->host);
}

void slot_ask(struct slot *s) {
    s->claim.ticket = s->claim.token = 0;
    id_make(s->id);
    if (store_claim(s->host->store, &s->claim) < 0)
        rig_fail("cannot ask");
    say(s);
}

void slot_release(struct slot *s) {
    store_release(s->host->store, &s->claim);
    say(s);
}

void rig_ask_all(struct rig *g, struct slot *slots, size_t n) {
    for (size_t i = 0; i < n;) {
        uint64_t end = g->n_granted + g->n_waiting;

        for (size_t k = 0; k < ASK_AT_ONCE && i < n; k++, i++, end++)
            slot_ask(&slots[i]);
        RIG_UNTIL(g, g->n_granted + g->n_waiting >= end);
    }
}

void rig_release_all(struct rig *g, struct slot *slots, size_t n) {
    for (size_t i = 0; i < n;) {
        uint64_t end = g->n_released;

        for (size_t k = 0; k < ASK_AT_ONCE && i < n; k++, i++, end++)
            slot_release(&slots[i]);
        RIG_UNTIL(g, g->n_released >= end);
    }
}

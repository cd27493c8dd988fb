/* SPDX-License-Identifier: MIT */
/* `berth run` shows on standard error what it waits for: permits before the command, leftover processes
 * after it. On a terminal, or with -v, it does so after a second and again on changes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/format.h"
#include "cli/run/run-adhoc.h"

#define FIRST_AFTER USEC_PER_SEC
#define AGAIN_AFTER (10 * USEC_PER_SEC) /* a call of Pools costs time in Redis */
#define NAMED_MAX 3                     /* holders of a pool; leftover processes */

static bool is_wanted(const struct adhoc *a) {
    return a->options.verbose || isatty(STDERR_FILENO);
}

static void print_once(struct adhoc *a, const char *text) {
    if (strcmp(text, a->waiting.printed) == 0)
        return;
    snprintf(a->waiting.printed, sizeof(a->waiting.printed), "%s", text);
    run_say(a, "berth: %s\n", a->waiting.printed);
}

void run_waiting_stop(struct adhoc *a) {
    timer_off(&a->waiting.timer);
    a->waiting.pools_client = client_free(a->waiting.pools_client);
    a->waiting.printed[0] = a->waiting.blocked_by[0] = '\0';
}

/* --- for permits --- */

/* "held by pg-dump on web-03, nap on web-07, +2" */
static void put_holders(FILE *f, const json_t *holders) {
    const json_t *holder;
    size_t i;

    json_array_foreach(holders, i, holder)
        if (i < NAMED_MAX)
            fprintf(f, "%s%.64s on %.64s", i > 0 ? ", " : ", held by ", format_get_text(holder, "name"),
                    format_get_text(holder, "host"));
    if (i > NAMED_MAX)
        fprintf(f, ", +%zu", i - NAMED_MAX);
}

/* Adds how many claims are ahead of this run in the queue, and the first of them. */
static void put_queue(FILE *f, const json_t *queue, const char *run) {
    const json_t *waiter, *first = json_array_get(queue, 0);
    size_t i;

    json_array_foreach(queue, i, waiter)
        if (strcmp(format_get_text(waiter, "claim"), run) == 0)
            break;
    if (i > 0 && i < json_array_size(queue))
        fprintf(f, "; %zu ahead, first %.64s on %.64s", i, format_get_text(first, "name"),
                format_get_text(first, "host"));
}

/* wants: how many permits of the pool the run needs. */
static void put_pool(FILE *f, const json_t *pool, unsigned wants, const char *run) {
    if (format_get_number(pool, "limit") == 0) {
        fprintf(f, json_is_object(json_object_get(pool, "override")) ? "%.130s is paused" : "%.130s has the limit 0",
                format_get_text(pool, "name"));
        return;
    }
    if (format_get_number(pool, "limit") < wants) {
        fprintf(f, "%.130s: the limit in force is %" JSON_INTEGER_FORMAT ", this needs %u", format_get_text(pool, "name"),
                format_get_number(pool, "limit"), wants);
        return;
    }
    fprintf(f, "%.64s: %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " permits in use",
            format_get_text(pool, "name"), format_get_number(pool, "used"),
            format_get_number(pool, "limit"));
    put_holders(f, json_object_get(pool, "holders"));
    put_queue(f, json_object_get(pool, "queue"), run);
}

static void print_pools(struct adhoc *a, const json_t *pools) {
    _cleanup_free_ char *text = NULL;
    const json_t *pool;
    size_t size, i;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return;
    fputs("waiting", f);
    json_array_foreach(pools, i, pool) {
        fputs(i == 0 ? ": " : " | ", f);
        put_pool(f, pool, demands_get(&a->options.pools, format_get_text(pool, "name")), a->run);
    }
    if (fclose(f) == 0)
        print_once(a, text);
}

static void pools_on_reply(_unused_ struct client *client, struct client_reply *reply, void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase == ADHOC_PHASE_CLAIMING && !reply->error && !a->waiting.blocked_by[0])
        print_pools(a, json_object_get(reply->params, "pools"));
    a->waiting.pools_client = client_free(a->waiting.pools_client);
}

static void pools_on_gone(_unused_ struct client *client, _unused_ int error, void *userdata) {
    struct adhoc *a = userdata;

    a->waiting.pools_client = client_free(a->waiting.pools_client);
}

static void request_pools(struct adhoc *a) {
    const struct client_handler handler = {
        .on_reply = pools_on_reply, .on_gone = pools_on_gone, .userdata = a};
    _cleanup_(client_freep) struct client *client = NULL;
    json_t *names = json_array();

    for (size_t i = 0; names && i < a->options.pools.n; i++)
        if (json_array_append_new(names, json_string(a->options.pools.items[i].pool)) < 0) {
            json_decref(names);
            return;
        }
    if (client_connect(&client) < 0 ||
        client_attach(client, a->event, ADHOC_PRIORITY_CONNECTION, &handler) < 0) {
        json_decref(names);
        return;
    }
    if (client_send(client, "io.berth.Pools", json_pack("{s:o}", "pools", names), 0) == 0)
        a->waiting.pools_client = steal_pointer(&client);
}

static void print_waiting(struct adhoc *a) {
    char text[sizeof(a->waiting.blocked_by) + 16];

    if (!a->connection.client) {
        print_once(a, "waiting: berthd is away");
    } else if (a->waiting.blocked_by[0]) { /* grace period, or why Redis is away */
        snprintf(text, sizeof(text), "waiting: %s", a->waiting.blocked_by);
        print_once(a, text);
    } else if (!a->waiting.pools_client) {
        request_pools(a);
    }
}

void run_waiting_update(struct adhoc *a, const json_t *params) {
    const char *blocked_by = params ? format_get_text(params, "blocked_by") : "";
    bool is_news = !params || strcmp(blocked_by, a->waiting.blocked_by) != 0;

    if (a->phase != ADHOC_PHASE_CLAIMING || !is_wanted(a))
        return;
    snprintf(a->waiting.blocked_by, sizeof(a->waiting.blocked_by), "%s", blocked_by);
    if (!timer_is_set(&a->waiting.timer) || is_news)
        timer_set_in(&a->waiting.timer, FIRST_AFTER);
}

/* --- for leftover processes --- */

/* "sleep (4711)" */
static void put_process(FILE *f, pid_t pid) {
    _cleanup_free_ char *name = NULL;
    char path[32];
    size_t size;

    snprintf(path, sizeof(path), "/proc/%d/comm", (int) pid);
    if (file_read(path, 64, &name, &size) < 0)
        return;
    name[strcspn(name, "\n")] = '\0';
    for (char *c = name; *c; c++)
        *c = *c >= ' ' && *c < 0x7f ? *c : '?';
    fprintf(f, " %s (%d)", name, (int) pid);
}

static void print_left(struct adhoc *a) {
    _cleanup_free_ char *text = NULL;
    pid_t pids[NAMED_MAX];
    size_t size;
    int n = supervise_list(a->command.supervise, pids, NAMED_MAX);
    FILE *f = n > 0 ? open_memstream(&text, &size) : NULL;

    if (!f)
        return;
    fputs("the command has ended; waiting for what it left behind:", f);
    for (int i = 0; i < n && i < NAMED_MAX; i++)
        put_process(f, pids[i]);
    if (n > NAMED_MAX)
        fprintf(f, " +%d", n - NAMED_MAX);
    if (fclose(f) == 0)
        print_once(a, text);
}

void run_waiting_on_left(struct adhoc *a) {
    if (is_wanted(a))
        timer_set_in(&a->waiting.timer, FIRST_AFTER);
}

static void waiting_on_due(void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase == ADHOC_PHASE_CLAIMING)
        print_waiting(a);
    else if (a->phase == ADHOC_PHASE_RUNNING)
        print_left(a);
    timer_set_in(&a->waiting.timer, AGAIN_AFTER);
}

int run_waiting_init(struct adhoc *a) {
    return timer_init(&a->waiting.timer, a->event, SD_EVENT_PRIORITY_NORMAL, waiting_on_due, a);
}

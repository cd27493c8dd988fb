/* SPDX-License-Identifier: MIT */
/* berth watch: the events of this host, and what pictures of the cluster show, as lines, across restarts of
 * berthd. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json/format.h"
#include "base/number.h"
#include "cli/client.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "cli/watch/event-line.h"
#include "cli/watch/sample.h"

#define VERB "watch"
#define AWAY_MAX (60 * USEC_PER_SEC) /* berth(1), SHOWING */
#define RETRY_MIN 100                /* ms */
#define RETRY_MAX 2000
#define AT_SIZE 64

struct watch {
    struct string_list pools, jobs;
    json_t *events;          /* names as members; NULL: all */
    bool json, is_of_cluster;
    struct client *pictures; /* the connection of Look; NULL: not of the cluster */
    json_t *sample;          /* of the last whole picture, or NULL */
    uint64_t count, most; /* printed events; the most to print, 0: any number */
    usec_t until;         /* boottime */
    char at[AT_SIZE];     /* the place in the stream up to which events are printed or counted; "": none */
};

static void watch_done(struct watch *w) {
    json_decref(w->events);
    client_free(w->pictures);
    json_decref(w->sample);
}

/* --- lines --- */

/* Prints a line and flushes it, for the reader of a pipe. line: stolen. Returns 0 or an exit status. */
static int print_line(const struct watch *w, json_t *line) {
    _cleanup_json_ _unused_ json_t *owned = line;

    if (!line)
        return client_explain_errno(-ENOMEM);
    if (!w->json)
        event_line_print(stdout, line, table_terminal_width());
    else if (json_dumpf(line, stdout, 0) == 0)
        (void) fputc('\n', stdout);
    return fflush(stdout) == 0 ? 0 : EXIT_INTERNAL; /* cli_main() prints the error */
}

static bool is_wanted(const struct watch *w, const json_t *line) {
    bool has_pool = w->pools.n == 0, has_job = w->jobs.n == 0;

    for (size_t i = 0; i < w->pools.n; i++)
        has_pool |= event_line_has_pool(line, w->pools.items[i]);
    for (size_t i = 0; i < w->jobs.n; i++)
        has_job |= event_line_has_job(line, w->jobs.items[i]);
    return has_pool && has_job;
}

static bool is_full(const struct watch *w) {
    return w->most > 0 && w->count >= w->most;
}

static int take_event(struct watch *w, const json_t *event) {
    json_t *line = event_line_to_json(event);

    (void) snprintf(w->at, sizeof(w->at), "%s", format_get_text(event, "at"));
    if (line && !is_wanted(w, line)) {
        json_decref(line);
        return 0;
    }
    w->count++;
    return print_line(w, line);
}

/* Prints a line of a comparison, if it is wanted. Returns 0 or an exit status. */
static int take_line(struct watch *w, json_t *line) {
    bool is_event = !json_object_get(line, "missed"),
         is_named = !w->events || json_object_get(w->events, format_get_text(line, "event"));

    if (is_event && !(is_named && is_wanted(w, line)))
        return 0;
    w->count += is_event;
    return print_line(w, json_incref(line));
}

/* Compares a picture with the last one. Returns 0 or an exit status. */
static int take_picture(struct watch *w, const json_t *picture) {
    json_t *sample, *lines, *line;
    size_t i;
    int k = 0;

    if (!sample_is_whole(picture))
        return 0;
    sample = sample_new(picture);
    lines = sample ? sample_compare(w->sample, sample, w->at, clock_realtime()) : NULL;
    json_decref(w->sample);
    w->sample = sample;
    if (!lines)
        return client_explain_errno(-ENOMEM);
    json_array_foreach (lines, i, line)
        if (k == 0 && !is_full(w))
            k = take_line(w, line);
    json_decref(lines);
    return k;
}

/* Takes one reply: a picture, an event, or how many events are missing. Returns 0 or an exit status. */
static int take_reply(struct watch *w, const struct client_reply *reply) {
    const json_t *event = json_object_get(reply->params, "event");
    json_int_t missed = format_get_number(reply->params, "missed");

    if (json_object_get(reply->params, "pools"))
        return take_picture(w, reply->params);
    if (json_is_object(event))
        return take_event(w, event);
    (void) snprintf(w->at, sizeof(w->at), "%s", format_get_text(reply->params, "at"));
    return missed != 0 ? print_line(w, event_line_gap(w->at, missed, clock_realtime())) : 0;
}

/* --- the stream --- */

/* Returns the wanted names of berthd's events. */
static json_t *berthd_events(const struct watch *w) {
    json_t *names = json_array(), *value;
    const char *name;

    json_object_foreach (w->events, name, value)
        if (!sample_is_event(name))
            (void) json_array_append_new(names, json_string(name));
    return names;
}

/* Asks for a picture each second: of all pools, or by name of the wanted ones, of which berthd then lists
 * more claims. Negative errno. */
static int ask_for_pictures(struct watch *w, bool by_name) {
    json_t *pools = json_array();

    for (size_t i = 0; by_name && i < w->pools.n; i++)
        (void) json_array_append_new(pools, json_string(w->pools.items[i]));
    return client_send(w->pictures, "io.berth.Look",
                       json_pack("{s:o, s:b}", "pools", pools, "hosts", true), CLIENT_MORE);
}

static int open_pictures(struct watch *w) {
    int r = client_connect_patiently(&w->pictures);

    return r == 0 ? ask_for_pictures(w, true) : r;
}

/* Receives the next picture. Returns -ETIMEDOUT if none has come yet. While Redis is away, berthd refuses
 * pools that only other hosts define. Then the watch asks for all pools, which berthd never refuses. */
static int receive_picture(struct watch *w, struct client_reply *ret) {
    int r = client_receive_until(w->pictures, ret, 0);

    if (r != 0 || !ret->error || !w->sample || strcmp(ret->error, "io.berth.NoSuchPool") != 0)
        return r;
    client_reply_done(ret);
    r = ask_for_pictures(w, false);
    return r == 0 ? -ETIMEDOUT : r;
}

/* Connects, and receives the first reply. Negative errno. */
static int open_stream(struct watch *w, struct client **c, struct client_reply *ret) {
    json_t *params = json_object();
    int r;

    if (w->at[0])
        (void) json_object_set_new(params, "since", json_string(w->at));
    if (w->events)
        (void) json_object_set_new(params, "events", berthd_events(w));
    *c = client_free(*c);
    w->pictures = client_free(w->pictures);
    r = client_connect_patiently(c);
    if (r < 0) {
        json_decref(params);
        return r;
    }
    client_end_with(*c, STDOUT_FILENO);
    r = client_send(*c, "io.berth.Events", params, CLIENT_MORE);
    if (r == 0)
        r = client_receive_before(*c, ret, w->until);
    if (r < 0 || ret->error || !w->is_of_cluster)
        return r;
    r = open_pictures(w);
    client_wake_with(*c, w->pictures);
    return r;
}

/* Receives the next picture or event. Negative errno. */
static int receive_next(struct watch *w, struct client *c, struct client_reply *ret) {
    int r;

    do {
        r = w->pictures ? receive_picture(w, ret) : -ETIMEDOUT;
        if (r == -ETIMEDOUT)
            r = client_receive_before(c, ret, w->until);
    } while (r == -EAGAIN);
    return r;
}

/* Waits until berthd is back. Returns 0 with a reply, -ETIME, or an exit status whose reason was printed. */
static int come_back(struct watch *w, struct client **c, struct client_reply *ret) {
    usec_t until = usec_add(clock_boottime(), AWAY_MAX);
    int pause = RETRY_MIN, r;

    for (;;) {
        client_reply_done(ret);
        r = open_stream(w, c, ret);
        if (r == 0 && !ret->error)
            return print_line(w,
                              event_line_reconnected(format_get_text(ret->params, "at"), clock_realtime()));
        if (r == -ETIME || clock_boottime() >= w->until)
            return -ETIME;
        if (!client_is_transient(r, ret))
            return r < 0 ? client_explain_errno(r) : client_explain(ret);
        if (clock_boottime() >= until) {
            fprintf(stderr, "berth: berthd has been away for %us\n", (unsigned) (AWAY_MAX / USEC_PER_SEC));
            return EXIT_AWAY;
        }
        (void) poll(NULL, 0, pause);
        pause = pause < RETRY_MAX / 2 ? 2 * pause : RETRY_MAX;
    }
}

/* Returns the exit status at the end of --timeout, with which scripts wait for an event. */
static int status_in_time(const struct watch *w) {
    return w->count > 0 ? 0 : EXIT_NO_PERMIT;
}

static int watch(struct watch *w) {
    _cleanup_(client_freep) struct client *c = NULL;
    bool has_begun = false;

    for (;;) {
        _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
        int r = has_begun ? receive_next(w, c, &reply) : open_stream(w, &c, &reply);

        if (r == -EPIPE) /* the reader of the lines is gone */
            return 0;
        if (has_begun && r != -ETIME && (r < 0 || reply.error) && client_is_transient(r, &reply))
            r = come_back(w, &c, &reply);
        if (r == -ETIME)
            return status_in_time(w);
        if (r != 0)
            return r < 0 ? client_explain_errno(r) : r;
        if (reply.error)
            return client_explain(&reply);
        has_begun = true;
        r = take_reply(w, &reply);
        if (r != 0 || is_full(w))
            return r;
    }
}

/* Takes the names of --events. Returns 0 or an exit status. */
static int take_names(struct watch *w, const struct string_list *list) {
    const char *name;
    json_t *value;

    if (list->n > 0)
        w->events = json_object();
    for (size_t i = 0; i < list->n; i++)
        for (const char *end, *at = list->items[i]; *at; at = *end ? end + 1 : end) {
            end = strchrnul(at, ',');
            (void) json_object_setn_new(w->events, at, (size_t) (end - at), json_true());
        }
    json_object_foreach (w->events, name, value)
        if (sample_is_event(name) && !w->is_of_cluster)
            return options_wrong_usage(VERB, "--events %s: needs --cluster", name);
    return 0;
}

int verb_watch(int argc, char **argv) {
    _cleanup_(watch_done) struct watch w = {.until = USEC_INFINITY};
    struct string_list events = {};
    const char *since = NULL, *count = NULL, *timeout = NULL;
    const struct verb_option options[] = {
        OPTION_FLAG("--json", &w.json),     OPTION_FLAG("--cluster", &w.is_of_cluster),
        OPTION_LIST("--events", &events),
        OPTION_LIST("--pool", &w.pools),    OPTION_LIST("--job", &w.jobs),
        OPTION_TEXT("--since", &since),    OPTION_VALUE("-n", &count),
        OPTION_VALUE("--timeout", &timeout)};
    json_int_t msec = 0;
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    status = take_names(&w, &events);
    for (size_t i = 0; status == 0 && i < w.pools.n; i++)
        status = options_check_pool(VERB, w.pools.items[i]);
    for (size_t i = 0; status == 0 && i < w.jobs.n; i++)
        status = options_check_job(VERB, "job", w.jobs.items[i]);
    if (status == 0 && count && (number_parse(count, NUMBER_MAX, &w.most) < 0 || w.most == 0))
        status = options_wrong_usage(VERB, "-n %.40s: must be a number of events, 1 or more", count);
    if (status == 0 && since && (!*since || strlen(since) >= sizeof(w.at)))
        status = options_wrong_usage(VERB, "--since %.100s: must be \"at\" of an event of --json", since);
    if (status == 0 && timeout)
        status = options_parse_msec(VERB, "--timeout", timeout, &msec);
    if (status != 0)
        return status;
    if (since)
        (void) snprintf(w.at, sizeof(w.at), "%s", since);
    if (timeout)
        w.until = usec_add(clock_boottime(), (usec_t) msec * USEC_PER_MSEC);
    return watch(&w);
}

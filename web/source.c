/* SPDX-License-Identifier: MIT */
#include "web/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/client/client.h"
#include "base/json/format.h"
#include "base/timer.h"

#define PERIOD USEC_PER_SEC
#define PERIOD_ALONE (5 * USEC_PER_SEC) /* while nobody looks, for the last hour */
#define LOOK_TIME (15 * USEC_PER_SEC)   /* after source_look(), in which somebody looks */
#define ANSWER_TIME (10 * USEC_PER_SEC)
#define AT_SIZE 64

struct source {
    sd_event *event;
    struct source_handler handler;
    struct client *looks, *follows; /* NULL: not connected */
    struct timer tick;
    usec_t period;                  /* of the pictures; 0: the call of Version is open */
    usec_t asked, answered, looked; /* boottime; of the connection, the last answer, the last look */
    char at[AT_SIZE];               /* the last event's place */
};

static void disconnect(struct source *s) {
    s->looks = client_free(s->looks);
    s->follows = client_free(s->follows);
}

static void lose(struct source *s, const char *why) {
    disconnect(s);
    s->handler.on_away(why, s->handler.userdata);
}

/* --- pictures --- */

static usec_t wanted_period(const struct source *s) {
    return usec_sub(clock_boottime(), s->looked) < LOOK_TIME ? PERIOD : PERIOD_ALONE;
}

static int look(struct source *s) {
    s->period = wanted_period(s);
    return client_send(
        s->looks, "io.berth.Look",
        json_pack("{s:b, s:I}", "hosts", true, "interval_ms", (json_int_t) (s->period / USEC_PER_MSEC)),
        CLIENT_MORE);
}

static void on_reply(_unused_ struct client *c, struct client_reply *reply, void *userdata) {
    struct source *s = userdata;
    int r;

    if (reply->error) {
        lose(s, strcmp(reply->error, "io.berth.Stopping") == 0 ? "berthd is stopping" : reply->error);
        return;
    }
    s->answered = clock_boottime();
    if (s->period > 0) {
        s->handler.on_picture(reply->params, s->handler.userdata);
        return;
    }
    s->handler.on_version(reply->params, s->handler.userdata);
    r = look(s);
    if (r < 0)
        lose(s, strerror(-r));
}

static void on_gone(_unused_ struct client *c, int error, void *userdata) {
    lose(userdata, error == -ECONNRESET ? "berthd closed the connection" : strerror(-error));
}

/* --- events --- */

static void on_event(_unused_ struct client *c, struct client_reply *reply, void *userdata) {
    struct source *s = userdata;
    const json_t *event = json_object_get(reply->params, "event");
    const char *at = format_get_text(json_is_object(event) ? event : reply->params, "at");
    json_int_t missed = json_integer_value(json_object_get(reply->params, "missed"));

    if (reply->error) { /* berthd has too many readers: the page shows no events */
        s->follows = client_free(s->follows);
        return;
    }
    (void) snprintf(s->at, sizeof(s->at), "%s", at);
    if (json_is_object(event))
        s->handler.on_event(event, s->handler.userdata);
    else if (missed != 0)
        s->handler.on_missed(missed, s->handler.userdata);
}

static void on_events_gone(_unused_ struct client *c, _unused_ int error, void *userdata) {
    struct source *s = userdata;

    s->follows = client_free(s->follows);
}

static int follow(struct source *s) {
    const struct client_handler handler = {on_event, on_events_gone, s};
    json_t *params = s->at[0] ? json_pack("{s:s}", "since", s->at) : json_object();
    int r = client_connect(&s->follows);

    if (r == 0)
        r = client_send(s->follows, "io.berth.Events", json_incref(params), CLIENT_MORE);
    if (r == 0)
        r = client_attach(s->follows, s->event, SD_EVENT_PRIORITY_NORMAL, &handler);
    if (r < 0)
        s->follows = client_free(s->follows);
    json_decref(params);
    return r;
}

/* --- time --- */

static int connect_to_berthd(struct source *s) {
    const struct client_handler handler = {on_reply, on_gone, s};
    int r = client_connect(&s->looks);

    s->period = 0;
    s->asked = clock_boottime();
    if (r == 0)
        r = client_send(s->looks, "io.berth.Version", NULL, 0);
    if (r == 0)
        r = client_attach(s->looks, s->event, SD_EVENT_PRIORITY_NORMAL, &handler);
    if (r < 0)
        s->looks = client_free(s->looks);
    return r;
}

/* Checks the connections each second. A new period of pictures needs a new connection. */
static void on_tick(void *userdata) {
    struct source *s = userdata;
    usec_t now = clock_boottime(), last = s->answered > s->asked ? s->answered : s->asked;
    int r = 0;

    timer_set(&s->tick, now - now % PERIOD + PERIOD);
    if (s->looks && now - last > ANSWER_TIME + s->period)
        lose(s, "berthd does not answer");
    if (s->looks && s->period > 0 && s->period != wanted_period(s))
        s->looks = client_free(s->looks);
    if (!s->looks)
        r = connect_to_berthd(s);
    if (r < 0)
        s->handler.on_away(strerror(-r), s->handler.userdata);
    if (s->looks && !s->follows)
        (void) follow(s);
}

int source_new(struct source **ret, sd_event *event, const struct source_handler *handler) {
    _cleanup_(source_freep) struct source *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return -ENOMEM;
    s->handler = *handler;
    s->event = sd_event_ref(event);
    r = timer_init(&s->tick, event, SD_EVENT_PRIORITY_NORMAL, on_tick, s);
    if (r < 0)
        return r;
    timer_set_in(&s->tick, 0);
    *ret = steal_pointer(&s);
    return 0;
}

struct source *source_free(struct source *s) {
    if (!s)
        return NULL;
    disconnect(s);
    timer_done(&s->tick);
    sd_event_unref(s->event);
    free(s);
    return NULL;
}

void source_look(struct source *s) {
    usec_t now = clock_boottime(), before = s->looked;

    s->looked = now;
    if (before == 0 || now - before > LOOK_TIME) /* the picture may be five seconds old */
        timer_set_in(&s->tick, 0);
}

usec_t source_answered(const struct source *s) {
    return s->answered;
}

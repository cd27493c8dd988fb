/* SPDX-License-Identifier: MIT */
#include "web/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/client/client.h"
#include "base/timer.h"

#define PERIOD USEC_PER_SEC
#define PERIOD_ALONE (5 * USEC_PER_SEC) /* nobody looks: for the last hour alone */
#define LOOK_TIME (15 * USEC_PER_SEC)   /* so long after source_look() somebody looks */
#define ANSWER_TIME (10 * USEC_PER_SEC)
#define AT_SIZE 64

enum step { STEP_IDLE, STEP_VERSION, STEP_POOLS, STEP_HOSTS };

struct source {
    sd_event *event;
    struct source_handler handler;
    struct client *asks, *follows; /* NULL: not connected */
    struct timer tick;
    enum step step;
    usec_t asked, answered, looked; /* boottime; of the question under way, the last answer, the last look */
    usec_t drawn;                   /* when the last picture was begun */
    json_t *pools;                  /* of the picture under way */
    char at[AT_SIZE];               /* the last event's place */
};

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static void disconnect(struct source *s) {
    s->asks = client_free(s->asks);
    s->follows = client_free(s->follows);
    s->step = STEP_IDLE;
    json_decref(s->pools);
    s->pools = NULL;
}

static void lose(struct source *s, const char *why) {
    disconnect(s);
    s->handler.on_away(why, s->handler.userdata);
}

/* --- questions --- */

static void ask(struct source *s, enum step step, const char *method) {
    int r = client_send(s->asks, method, NULL, 0);

    s->step = step;
    s->asked = clock_boottime();
    if (r < 0)
        lose(s, strerror(-r));
}

static void take_picture(struct source *s, const json_t *hosts) {
    s->step = STEP_IDLE;
    s->handler.on_picture(s->pools, hosts, s->handler.userdata);
    json_decref(s->pools);
    s->pools = NULL;
}

static void on_reply(_unused_ struct client *c, struct client_reply *reply, void *userdata) {
    struct source *s = userdata;

    if (reply->error) {
        lose(s, strcmp(reply->error, "io.berth.Stopping") == 0 ? "berthd is stopping" : reply->error);
        return;
    }
    s->answered = clock_boottime();
    switch (s->step) {
    case STEP_VERSION:
        s->handler.on_version(reply->params, s->handler.userdata);
        ask(s, STEP_POOLS, "io.berth.Pools");
        break;
    case STEP_POOLS:
        s->pools = json_incref(reply->params);
        ask(s, STEP_HOSTS, "io.berth.Hosts");
        break;
    case STEP_HOSTS:
        take_picture(s, reply->params);
        break;
    case STEP_IDLE:
        break;
    }
}

static void on_gone(_unused_ struct client *c, int error, void *userdata) {
    lose(userdata, error == -ECONNRESET ? "berthd closed the connection" : strerror(-error));
}

/* --- events --- */

static void on_event(_unused_ struct client *c, struct client_reply *reply, void *userdata) {
    struct source *s = userdata;
    const json_t *event = json_object_get(reply->params, "event");
    const char *at = text_of(json_is_object(event) ? event : reply->params, "at");
    json_int_t missed = json_integer_value(json_object_get(reply->params, "missed"));

    if (reply->error) { /* as many readers as berthd serves: the page does without */
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
    int r = client_connect(&s->asks);

    if (r == 0)
        r = client_attach(s->asks, s->event, SD_EVENT_PRIORITY_NORMAL, &handler);
    if (r < 0)
        s->asks = client_free(s->asks);
    return r;
}

static void on_tick(void *userdata) {
    struct source *s = userdata;
    usec_t now = clock_boottime();
    usec_t period = usec_sub(now, s->looked) < LOOK_TIME ? PERIOD : PERIOD_ALONE;
    int r;

    timer_set(&s->tick, now - now % PERIOD + PERIOD);
    if (s->asks && s->step != STEP_IDLE && now - s->asked > ANSWER_TIME)
        lose(s, "berthd does not answer");
    if (!s->asks) {
        r = connect_to_berthd(s);
        if (r < 0) {
            s->handler.on_away(strerror(-r), s->handler.userdata);
            return;
        }
        s->drawn = now;
        ask(s, STEP_VERSION, "io.berth.Version");
    } else if (s->step == STEP_IDLE && now - s->drawn + PERIOD / 2 >= period) {
        s->drawn = now;
        ask(s, STEP_POOLS, "io.berth.Pools");
    }
    if (s->asks && !s->follows)
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

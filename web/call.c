/* SPDX-License-Identifier: MIT */
#include "web/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/timer.h"

struct call {
    struct client *client;
    struct timer timer;
    call_fn fn;
    void *userdata;
};

static unsigned n_calls;

struct call *call_free(struct call *c) {
    if (!c)
        return NULL;
    client_free(c->client);
    timer_done(&c->timer);
    free(c);
    n_calls--;
    return NULL;
}

static void finish(struct call *c, const struct client_reply *reply, const char *why) {
    c->fn(reply, why, c->userdata);
    call_free(c);
}

static void on_reply(_unused_ struct client *client, struct client_reply *reply, void *userdata) {
    finish(userdata, reply, NULL);
}

static void on_gone(_unused_ struct client *client, int error, void *userdata) {
    finish(userdata, NULL, error == -ECONNRESET ? "berthd closed the connection" : strerror(-error));
}

static void on_late(void *userdata) {
    finish(userdata, NULL, "berthd does not answer");
}

int call_new(struct call **ret, sd_event *event, const char *method, json_t *params, call_fn fn, void *userdata) {
    struct call *c = n_calls < CALLS_MAX ? calloc(1, sizeof(*c)) : NULL;
    const struct client_handler handler = {on_reply, on_gone, c};
    int r = c ? 0 : n_calls < CALLS_MAX ? -ENOMEM : -EBUSY;

    if (r < 0) {
        json_decref(params);
        return r;
    }
    n_calls++;
    c->fn = fn;
    c->userdata = userdata;
    r = client_connect(&c->client);
    if (r < 0)
        json_decref(params);
    else
        r = client_send(c->client, method, params, 0);
    if (r == 0)
        r = client_attach(c->client, event, SD_EVENT_PRIORITY_NORMAL, &handler);
    if (r == 0)
        r = timer_init(&c->timer, event, SD_EVENT_PRIORITY_NORMAL, on_late, c);
    if (r < 0) {
        call_free(c);
        return r;
    }
    timer_set_in(&c->timer, CLIENT_ANSWER_TIME);
    *ret = c;
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "web/act.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/list.h"
#include "web/call.h"
#include "web/users.h"

#define COOKIE "berth-session=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%d"
#define COOKIE_SIZE 192
#define TEXT_SIZE 512
#define NAME_OF_TOKEN "token"

struct action { /* a call under way */
    struct list link;
    struct exchange *exchange;
    struct call *call;
};

struct act {
    sd_event *event;
    struct users users;
    struct list actions; /* struct action */
};

/* The methods of the page. Each has on_behalf, with which berthd records the user. */
static const char *const methods[] = {
    "io.berth.Pause", "io.berth.Resume", "io.berth.SetLimit", "io.berth.ClearLimit", "io.berth.Revoke",
    "io.berth.Stop",  "io.berth.Move",
};

int act_new(struct act **ret, sd_event *event, const char *token) {
    struct act *a = calloc(1, sizeof(*a));

    if (!a)
        return -ENOMEM;
    a->event = sd_event_ref(event);
    list_init(&a->actions);
    if (token)
        (void) snprintf(a->users.token, sizeof(a->users.token), "%s", token);
    *ret = a;
    return 0;
}

static void action_free(struct action *action) {
    list_unlink(&action->link);
    call_free(action->call);
    free(action);
}

struct act *act_free(struct act *a) {
    if (!a)
        return NULL;
    list_foreach_safe(action, &a->actions, struct action, link)
        action_free(action);
    explicit_bzero(&a->users, sizeof(a->users));
    sd_event_unref(a->event);
    free(a);
    return NULL;
}

void act_on_end(struct act *a, struct exchange *x) {
    list_foreach_safe(action, &a->actions, struct action, link)
        if (action->exchange == x)
            action_free(action);
}

/* --- answers --- */

static void answer(struct exchange *x, unsigned status, const char *cookie, const char *key, json_t *value) {
    _cleanup_free_ char *text = NULL;
    json_t *json = json_pack("{s:o}", key, value);

    text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    http_answer(x, &(struct http_answer) {.status = text ? status : 503, .type = "application/json", .body = text ? text : "{}",
                                          .n_body = text ? strlen(text) : 2, .cookie = cookie});
}

static void refuse(struct exchange *x, unsigned status, const char *text) {
    answer(x, status, NULL, "error", json_string(text));
}

/* --- login --- */

static void login(struct act *a, struct exchange *x, const json_t *body) {
    const char *token = json_string_value(json_object_get(body, "token"));
    char session[USERS_SESSION_SIZE], cookie[COOKIE_SIZE];
    int r = token ? users_login(&a->users, token, clock_boottime(), session) : USERS_E_WRONG;

    if (r == USERS_E_LATER) {
        refuse(x, 429, "too many wrong tokens: try again in a minute");
    } else if (r == USERS_E_WRONG) {
        refuse(x, 403, "wrong token");
    } else if (r < 0) {
        refuse(x, 503, "no random numbers");
    } else {
        (void) snprintf(cookie, sizeof(cookie), COOKIE, session, (int) (USERS_SESSION_TIME / USEC_PER_SEC));
        answer(x, 200, cookie, "user", json_string(NAME_OF_TOKEN));
    }
}

static void logout(struct act *a, struct exchange *x, const char *session) {
    char cookie[COOKIE_SIZE];

    if (session)
        users_logout(&a->users, session);
    (void) snprintf(cookie, sizeof(cookie), COOKIE, "", 0);
    answer(x, 200, cookie, "user", json_null());
}

/* --- actions --- */

/* Returns the user who acts, or NULL. */
static const char *user_of(const struct act *a, const struct http_request *q) {
    if (q->user)
        return users_is_name(q->user) ? q->user : NULL;
    return q->session && users_is_session(&a->users, q->session, clock_boottime()) ? NAME_OF_TOKEN : NULL;
}

static bool is_known(const char *method) {
    for (size_t i = 0; i < ELEMENTSOF(methods); i++)
        if (strcmp(methods[i], method) == 0)
            return true;
    return false;
}

static void on_reply(const struct client_reply *reply, const char *why, void *userdata) {
    struct action *action = userdata;
    const char *text = reply ? json_string_value(json_object_get(reply->params, "text")) : why;
    char buffer[TEXT_SIZE];

    action->call = NULL;
    if (reply && !reply->error) {
        answer(action->exchange, 200, NULL, "done", json_incref(reply->params));
        return;
    }
    if (!text) {
        (void) snprintf(buffer, sizeof(buffer), "berthd answered %.100s", reply ? reply->error : "nothing");
        text = buffer;
    }
    refuse(action->exchange, !reply ? 503 : strcmp(reply->error, "io.berth.NotAllowed") == 0 ? 403 : 409, text);
}

/* params: borrowed. */
static void call(struct act *a, struct exchange *x, const char *user, const char *method, json_t *params) {
    struct action *action = calloc(1, sizeof(*action));
    json_t *copy = json_copy(params);
    int r = -ENOMEM;

    if (action && copy && json_object_set_new(copy, "on_behalf", json_string(user)) == 0) {
        action->exchange = x;
        list_append(&a->actions, &action->link);
        r = call_new(&action->call, a->event, method, json_incref(copy), on_reply, action);
        if (r < 0)
            action_free(action);
    } else {
        free(action);
    }
    json_decref(copy);
    if (r < 0)
        refuse(x, 503, r == -EBUSY ? "too many actions at once" : strerror(-r));
    else
        http_wait(x);
}

static void act(struct act *a, struct exchange *x, const struct http_request *q, json_t *body) {
    const char *user = user_of(a, q), *method = json_string_value(json_object_get(body, "method"));
    json_t *params = json_object_get(body, "parameters");

    if (!user)
        refuse(x, 401, "nobody is logged in");
    else if (!method || !is_known(method))
        refuse(x, 400, "the page has no such action");
    else if (!json_is_object(params))
        refuse(x, 400, "the action has no parameters");
    else
        call(a, x, user, method, params);
}

/* Says who is logged in: the page cannot read its cookie, nor know whether the session has ended. */
static void answer_user(const struct act *a, struct exchange *x, const struct http_request *q) {
    const char *user = user_of(a, q);

    answer(x, 200, NULL, "user", user ? json_string(user) : json_null());
}

void act_on_request(struct act *a, struct exchange *x, const struct http_request *q) {
    json_t *body = json_loadb(q->body, q->n_body, JSON_REJECT_DUPLICATES, NULL);

    if (q->route == ROUTE_USER)
        answer_user(a, x, q);
    else if (q->route == ROUTE_LOGOUT)
        logout(a, x, q->session);
    else if (!json_is_object(body))
        refuse(x, 400, "the body is not a JSON object");
    else if (q->route == ROUTE_LOGIN)
        login(a, x, body);
    else
        act(a, x, q, body);
    json_decref(body);
}

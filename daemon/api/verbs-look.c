/* SPDX-License-Identifier: MIT */

/* Look: pools and hosts, once or as a stream of pictures. All clients ask at the same moments and share one
 * snapshot, so a hundred cost Redis as much as one. Those that ask for the same pools share the text of the
 * picture, too. A client that has not read a picture yet gets no other one; when it has, it gets the newest. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/timer.h"
#include "daemon/api/verbs-internal.h"

#define INTERVAL_MIN_MSEC 1000
#define INTERVAL_MAX_MSEC (3600 * 1000)
#define ASK_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 1) /* after all clients that ask at this moment */

struct question { /* of clients that ask for the same picture at the same moment */
    struct list link;    /* on `questions` until it is answered */
    struct list lookers; /* struct looker.link; freed with the last one */
    struct picture picture; /* owns wanted */
    struct show *show;   /* NULL: not asked yet */
    struct timer timer;  /* asks it */
};

struct looker { /* one call */
    struct place place; /* of a stream */
    struct list link;
    struct manager *manager;
    struct control_call *call;
    struct question *question; /* under way, or NULL */
    struct timer timer; /* for the next one */
    usec_t interval;
    json_t *pools;      /* names, or NULL */
    bool hosts;
    bool is_due;        /* a picture is due when the client has taken the one before */
};

static struct list places = {&places, &places}, questions = {&questions, &questions};

static struct question *question_free(struct question *q) {
    if (!q)
        return NULL;
    list_unlink(&q->link);
    if (q->show)
        verbs_forget(q->show);
    timer_done(&q->timer);
    json_decref(q->picture.wanted);
    free(q);
    return NULL;
}
DEFINE_CLEANUP(struct question, question_free)

static void leave(struct looker *l) {
    struct question *q = l->question;

    l->question = NULL;
    list_unlink(&l->link);
    if (q && list_is_empty(&q->lookers))
        question_free(q);
}

static struct looker *looker_free(struct looker *l) {
    if (!l)
        return NULL;
    leave(l);
    list_unlink(&l->place.link);
    timer_done(&l->timer);
    json_decref(l->pools);
    free(l);
    return NULL;
}
DEFINE_CLEANUP(struct looker, looker_free)

static void looker_on_gone(_unused_ struct control_call *call, void *userdata) {
    looker_free(userdata);
}

/* Sets the timer to the next moment at which all clients with this interval ask. */
static void wait_for_next(struct looker *l) {
    usec_t now = clock_boottime();

    timer_set(&l->timer, usec_add(now - now % l->interval, l->interval));
}

/* --- pictures --- */

/* Sends a picture, or the error; text: NULL without memory. */
static void give(struct looker *l, struct control_text *text, const char *unknown) {
    if (!unknown && l->interval > 0) {
        (void) control_call_notify_text(l->call, text);
        wait_for_next(l);
        return;
    }
    if (unknown)
        (void) verbs_no_such_pool(l->call, l->manager, unknown);
    else
        (void) control_call_answer_text(l->call, text);
    looker_free(l);
}

static void question_on_seen(const struct snapshot *host, const struct snapshot *cluster, void *userdata) {
    struct question *q = userdata;
    const char *unknown = NULL;
    _cleanup_(control_text_freep) struct control_text *text = picture_make(&q->picture, host, cluster, &unknown);
    bool is_last;

    list_unlink(&q->link);
    q->show = NULL;
    do {
        struct looker *l = list_first(&q->lookers, struct looker, link);

        list_unlink(&l->link);
        l->question = NULL;
        is_last = list_is_empty(&q->lookers);
        give(l, text, unknown);
    } while (!is_last);
    question_free(q);
}

/* Without memory this picture is skipped. */
static void question_on_time(void *userdata) {
    struct question *q = userdata;

    q->show = verbs_ask(q->picture.manager, q->picture.wanted, question_on_seen, q);
    if (q->show)
        return;
    list_foreach_safe(l, &q->lookers, struct looker, link) {
        list_unlink(&l->link);
        l->question = NULL;
        if (l->interval > 0)
            wait_for_next(l);
        else
            give(l, NULL, NULL);
    }
    question_free(q);
}

static struct question *question_new(const struct looker *l, bool continues) {
    _cleanup_(question_freep) struct question *q = calloc(1, sizeof(*q));

    if (!q)
        return NULL;
    list_init(&q->link);
    list_init(&q->lookers);
    q->picture = (struct picture){
        .manager = l->manager, .wanted = json_incref(l->pools), .has_hosts = l->hosts, .continues = continues};
    if (timer_init(&q->timer, manager_event(l->manager), ASK_PRIORITY, question_on_time, q) < 0)
        return NULL;
    timer_set_in(&q->timer, 0);
    list_append(&questions, &q->link);
    return steal_pointer(&q);
}

/* Returns a question that is not asked yet, so that no picture is older than its request. A stream also shares one that
 * Redis is answering: the picture has its age, and the next one follows. So streams that begin one after another do not
 * have a text each. */
static struct question *find_or_add(const struct looker *l) {
    bool continues = l->interval > 0;

    list_foreach(q, &questions, struct question, link)
        if ((!q->show || continues) && q->picture.has_hosts == l->hosts && q->picture.continues == continues &&
            (q->picture.wanted == l->pools || json_equal(q->picture.wanted, l->pools)))
            return q;
    return question_new(l, continues);
}

/* -ENOMEM. */
static int ask(struct looker *l) {
    l->is_due = false;
    l->question = find_or_add(l);
    if (!l->question)
        return -ENOMEM;
    list_append(&l->question->lookers, &l->link);
    return 0;
}

static void ask_again(struct looker *l) {
    if (ask(l) < 0)
        wait_for_next(l);
}

static void looker_on_time(void *userdata) {
    struct looker *l = userdata;

    l->is_due = control_call_count_waiting(l->call) > 0;
    if (!l->is_due)
        ask_again(l);
}

static void looker_on_room(void *userdata) {
    struct looker *l = userdata;

    if (l->is_due)
        ask_again(l);
}

/* --- calls --- */

int verbs_look_on(struct control_call *call, json_t *params, void *userdata) {
    struct manager *m = userdata;
    _cleanup_(looker_freep) struct looker *l = NULL;
    json_int_t interval = INTERVAL_MIN_MSEC;
    json_t *pools = NULL;
    bool hosts = false;
    const struct param table[] = {{"pools", PARAM_STRINGS, false, &pools, 0, 0},
                                  {"hosts", PARAM_BOOL, false, &hosts, 0, 0},
                                  {"interval_ms", PARAM_INT, false, &interval, INTERVAL_MIN_MSEC,
                                   INTERVAL_MAX_MSEC}};
    int r = params_read(call, params, table, ELEMENTSOF(table));

    if (r != 0)
        return r;
    l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    list_init(&l->place.link);
    list_init(&l->link);
    l->manager = m;
    l->call = call;
    l->pools = json_incref(pools);
    l->hosts = hosts;
    r = timer_init(&l->timer, manager_event(m), SD_EVENT_PRIORITY_NORMAL, looker_on_time, l);
    if (r < 0)
        return r;
    r = control_call_wants_more(call) ? places_take(&places, &l->place, call, "look") : 0;
    if (r != 0)
        return r < 0 ? r : 0;
    if (control_call_wants_more(call)) {
        l->interval = (usec_t) interval * USEC_PER_MSEC;
        control_call_await_room(call, looker_on_room);
    }
    r = ask(l);
    if (r < 0)
        return r;
    control_call_keep(call, looker_on_gone, steal_pointer(&l));
    return 0;
}

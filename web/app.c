/* SPDX-License-Identifier: MIT */
#include "web/app.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/client/metrics-text.h"
#include "base/text.h"
#include "web/act.h"
#include "web/board.h"
#include "web/call.h"
#include "web/explain.h"
#include "web/files.h"
#include "web/plain-page.h"
#include "web/source.h"
#include "web/stream.h"
#include "web/timeline.h"

#define HEALTHY_TIME (10 * USEC_PER_SEC)
#define JSON_TYPE "application/json"
#define TEXT_TYPE "text/plain; charset=utf-8"
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct app {
    sd_event *event;
    struct http *http;
    struct source *source;
    struct board *board;
    struct stream *stream;
    struct timeline *timeline;
    struct act *act;
};

struct task { /* of one exchange */
    struct exchange *exchange;
    struct reader *reader; /* of a stream */
    struct call *call;     /* of /metrics */
    struct explain *explain;
    bool is_openmetrics;
};

/* --- from berthd --- */

static void make_frame(struct app *a) {
    if (stream_readers(a->stream) > 0)
        source_look(a->source);
    stream_make_frame(a->stream);
    board_begin_frame(a->board);
}

static void on_version(const json_t *version, void *userdata) {
    board_set_version(((struct app *) userdata)->board, version);
}

static void on_picture(const json_t *picture, void *userdata) {
    struct app *a = userdata;

    board_set_picture(a->board, picture);
    if (!json_is_true(json_object_get(picture, "stale")))
        timeline_add_picture(a->timeline, json_object_get(picture, "pools"), clock_realtime());
    make_frame(a);
}

static void on_event(const json_t *event, void *userdata) {
    struct app *a = userdata;

    board_add_event(a->board, event);
    timeline_add_event(a->timeline, event);
}

static void on_missed(json_int_t missed, void *userdata) {
    board_add_missed(((struct app *) userdata)->board, missed);
}

static void on_away(const char *why, void *userdata) {
    struct app *a = userdata;

    board_set_away(a->board, why);
    make_frame(a);
}

/* --- answers --- */

static void answer_text(struct exchange *x, unsigned status, const char *text) {
    http_answer(x, &(struct http_answer) {.status = status, .type = TEXT_TYPE, .body = text, .n_body = strlen(text)});
}

/* json: stolen; NULL: no memory. */
static void answer_json(struct exchange *x, json_t *json) {
    _cleanup_free_ char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    if (!text)
        answer_text(x, 503, "out of memory\n");
    else
        http_answer(x, &(struct http_answer) {.status = 200, .type = JSON_TYPE, .body = text, .n_body = strlen(text)});
}

static void answer_known(struct exchange *x, const struct app *a, json_t *json, const char *unknown) {
    if (json)
        answer_json(x, json);
    else if (!board_pools(a->board))
        answer_text(x, 503, "berthd has not answered yet\n");
    else
        answer_text(x, 404, unknown);
}

static void answer_file(struct exchange *x, const struct http_request *q, enum page_file which) {
    const struct file *file = files_get(which);
    bool is_known = q->etag && strstr(q->etag, file->etag);

    http_answer(x, &(struct http_answer) {.status = is_known ? 304 : 200, .type = file->type, .body = file->data,
                                          .n_body = is_known ? 0 : file->size, .is_static = true, .etag = file->etag});
}

static void answer_plain(struct exchange *x, const struct app *a) {
    size_t size;
    _cleanup_free_ char *text = plain_page_make(a->board, &size);

    if (!text)
        answer_text(x, 503, "out of memory\n");
    else
        http_answer(x, &(struct http_answer) {.status = 200, .type = "text/html; charset=utf-8", .body = text,
                                              .n_body = size});
}

static void answer_health(struct exchange *x, const struct app *a) {
    usec_t answered = source_answered(a->source);

    if (answered > 0 && clock_boottime() - answered < HEALTHY_TIME)
        answer_text(x, 200, "ok\n");
    else
        answer_text(x, 503, "berthd does not answer\n");
}

/* --- metrics --- */

static void answer_metrics(struct exchange *x, const json_t *metrics, bool is_openmetrics) {
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (f)
        metrics_print(f, metrics, is_openmetrics);
    if (!f || fclose(f) != 0)
        answer_text(x, 503, "out of memory\n");
    else
        http_answer(x, &(struct http_answer) {.status = 200, .type = is_openmetrics ? OPENMETRICS_TYPE : METRICS_TYPE,
                                              .body = text, .n_body = size});
}

/* Answers without a reply, too: berth_up shows whether berthd is there. */
static void on_metrics(const struct client_reply *reply, _unused_ const char *why, void *userdata) {
    struct task *task = userdata;
    const json_t *metrics = reply && !reply->error ? json_object_get(reply->params, "metrics") : NULL;

    task->call = NULL;
    answer_metrics(task->exchange, json_is_object(metrics) ? metrics : NULL, task->is_openmetrics);
}

static void ask_metrics(struct exchange *x, struct app *a, struct task *task, const char *accept) {
    int r;

    task->is_openmetrics = accept && strstr(accept, "application/openmetrics-text");
    r = call_new(&task->call, a->event, "io.berth.Metrics", json_pack("{s:b}", "cluster", true), on_metrics, task);
    if (r == -EBUSY)
        answer_text(x, 503, "too many requests for metrics at once\n");
    else if (r < 0)
        answer_metrics(x, NULL, task->is_openmetrics);
    else
        http_wait(x);
}

/* --- why a claim waits --- */

static void on_explained(json_t *answer, const char *why, void *userdata) {
    struct task *task = userdata;

    task->explain = NULL;
    if (answer)
        answer_json(task->exchange, answer);
    else
        answer_text(task->exchange, 503, why);
}

static void answer_explain(struct exchange *x, struct app *a, struct task *task, const char *claim) {
    json_t *answer = NULL;
    int r = explain_new(&task->explain, &answer, a->event, a->board, claim, on_explained, task);

    if (r == 0)
        http_wait(x);
    else if (r == 1 || r == -ENOENT)
        answer_known(x, a, answer, "this claim does not exist, or its pool lists only 100 other ones\n");
    else
        answer_text(x, 503, r == -EBUSY ? "too many requests at once\n" : "cannot send the call to berthd\n");
}

/* --- streams --- */

static void on_wake(void *userdata) {
    http_wake(((struct task *) userdata)->exchange);
}

static ssize_t on_read(void *userdata, char *buffer, size_t size) {
    return reader_read(((struct task *) userdata)->reader, buffer, size);
}

static void answer_stream(struct exchange *x, struct app *a, struct task *task, const char *pool) {
    int r = reader_new(&task->reader, a->stream, pool, on_wake, task);

    if (r < 0)
        answer_text(x, 503, r == -EUSERS ? "too many pages are open\n" : "out of memory\n");
    else
        http_stream(x, on_read, task);
}

/* --- requests --- */

static void on_request(struct exchange *x, const struct http_request *q, void *userdata) {
    struct app *a = userdata;
    struct task *task = calloc(1, sizeof(*task));

    exchange_set_data(x, task);
    if (!task) {
        answer_text(x, 503, "out of memory\n");
        return;
    }
    task->exchange = x;
    if (!text_is_utf8(q->pool)) {
        answer_text(x, 400, "the pool is not UTF-8\n");
        return;
    }
    if (q->route != ROUTE_HEALTH && q->route != ROUTE_METRICS)
        source_look(a->source);
    switch (q->route) {
    case ROUTE_PAGE:
        answer_file(x, q, PAGE_HTML);
        break;
    case ROUTE_STYLE:
        answer_file(x, q, PAGE_STYLE);
        break;
    case ROUTE_SCRIPT:
        answer_file(x, q, PAGE_SCRIPT);
        break;
    case ROUTE_ICON:
        answer_file(x, q, PAGE_ICON);
        break;
    case ROUTE_PLAIN:
        answer_plain(x, a);
        break;
    case ROUTE_OVERVIEW:
        answer_known(x, a, board_pools_reply(a->board, NULL), "");
        break;
    case ROUTE_POOL:
        answer_known(x, a, board_pools_reply(a->board, q->rest), "there is no such pool\n");
        break;
    case ROUTE_HOSTS:
        answer_known(x, a, board_hosts_reply(a->board), "");
        break;
    case ROUTE_EXPLAIN:
        answer_explain(x, a, task, q->rest);
        break;
    case ROUTE_TIMELINE:
        answer_json(x, timeline_to_json(a->timeline, q->pool, clock_realtime()));
        break;
    case ROUTE_STREAM:
        answer_stream(x, a, task, q->pool);
        break;
    case ROUTE_METRICS:
        ask_metrics(x, a, task, q->accept);
        break;
    case ROUTE_HEALTH:
        answer_health(x, a);
        break;
    case ROUTE_USER:
    case ROUTE_DO:
    case ROUTE_LOGIN:
    case ROUTE_LOGOUT:
        act_on_request(a->act, x, q);
        break;
    }
}

static void on_end(struct exchange *x, void *userdata) {
    struct app *a = userdata;
    struct task *task = exchange_data(x);

    act_on_end(a->act, x);
    if (task) {
        reader_free(task->reader);
        call_free(task->call);
        explain_free(task->explain);
    }
    free(task);
}

/* --- begin and end --- */

static int begin(struct app *a, const struct app_options *options) {
    const struct http_handler http_handler = {on_request, on_end, a};
    const struct source_handler source_handler = {on_version, on_picture, on_event, on_missed, on_away, a};
    const struct board_texts texts = {options->title, options->site.has_actions, options->token != NULL};
    int r = board_new(&a->board, &texts);

    if (r == 0)
        r = stream_new(&a->stream, a->board);
    if (r == 0)
        r = timeline_new(&a->timeline);
    if (r == 0)
        r = act_new(&a->act, a->event, options->token);
    if (r == 0)
        r = source_new(&a->source, a->event, &source_handler);
    return r == 0 ? http_new(&a->http, a->event, &options->site, &http_handler) : r;
}

int app_new(struct app **ret, sd_event *event, const struct app_options *options) {
    _cleanup_(app_freep) struct app *a = calloc(1, sizeof(*a));
    int r;

    if (!a)
        return -ENOMEM;
    a->event = sd_event_ref(event);
    r = begin(a, options);
    if (r < 0)
        return r;
    *ret = steal_pointer(&a);
    return 0;
}

int app_listen(struct app *a, int fd, bool is_unix) {
    return http_listen(a->http, fd, is_unix);
}

struct app *app_free(struct app *a) {
    if (!a)
        return NULL;
    http_free(a->http); /* ends all exchanges */
    source_free(a->source);
    stream_free(a->stream);
    timeline_free(a->timeline);
    board_free(a->board);
    act_free(a->act);
    sd_event_unref(a->event);
    free(a);
    return NULL;
}

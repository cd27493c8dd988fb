/* SPDX-License-Identifier: MIT */

/* Frames: a reader of each frame gets the changes, a slow reader the newest whole frame; and the bars of
 * the last hour. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"
#include "web/stream.h"
#include "web/timeline.h"

#define T0 (1000000 * USEC_PER_SEC)

static struct board *board;
static struct stream *stream;
static unsigned n_wakes;

static void set_up(void) {
    const struct board_texts texts = {};

    n_wakes = 0;
    CU_ASSERT_FATAL(board_new(&board, &texts) == 0 && stream_new(&stream, board) == 0);
}

static void tear_down(void) {
    stream = stream_free(stream);
    board = board_free(board);
}

static void on_wake(void *userdata) {
    (void) userdata;
    n_wakes++;
}

/* Returns a picture of the pools db, with this many permits in use, and net, with this many waiting
 * claims. */
static json_t *picture_new(int used, int waiting) {
    json_t *queue = json_array(), *holders = json_array();

    for (int i = 0; i < waiting; i++) {
        char claim[40];

        snprintf(claim, sizeof(claim), "%032x", 100 + i);
        json_array_append_new(queue, json_pack("{s:s, s:s, s:s, s:i, s:i, s:i}", "claim", claim, "host", "ant", "name", "dump", "permits", 1,
                                               "position", i + 1, "waiting_ms", 1000));
    }
    if (used > 0)
        json_array_append_new(holders, json_pack("{s:s, s:s, s:s, s:i, s:s}", "claim", "00000000000000000000000000000001", "host", "ant",
                                                 "name", "load", "permits", used, "since", "1970-01-12T13:46:30.500000Z"));
    return json_pack("{s:{s:s}, s:[], s:b, s:[{s:s, s:i, s:i, s:i, s:o, s:[]}, {s:s, s:i, s:i, s:i, s:[], s:o}]}", "redis", "state", "connected",
                     "hosts", "stale", 0, "pools", "name", "db", "limit", 4, "used", used, "waiting", 0, "holders", holders, "queue", "name", "net",
                     "limit", 2, "used", 0, "waiting", waiting, "holders", "queue", queue);
}

/* Returns late_ms of the host whose last sign of life was that long ago, with a lease of 30 s. */
static json_int_t late_after(json_int_t seen_ms) {
    json_t *picture = json_pack("{s:{s:s, s:i}, s:[{s:s, s:s, s:I}], s:[]}", "redis", "state", "connected",
                                "lease_ms", 30000, "hosts", "host", "bee", "session", "s1", "seen_ms", seen_ms,
                                "pools");
    json_t *overview, *host;
    json_int_t late;

    board_set_picture(board, picture);
    overview = board_overview(board);
    host = json_array_get(json_object_get(overview, "hosts"), 0);
    late = json_integer_value(json_object_get(host, "late_ms"));
    json_decref(overview);
    json_decref(picture);
    return late;
}

/* An idle host sends a heartbeat every third of the lease. */
static void test_late(void) {
    CU_ASSERT(late_after(0) == 0);
    CU_ASSERT(late_after(12000) == 0);
    CU_ASSERT(late_after(22500) == 0);
    CU_ASSERT(late_after(22900) == 22000);
}

static void draw(int used, int waiting) {
    json_t *picture = picture_new(used, waiting);

    board_set_picture(board, picture);
    stream_make_frame(stream);
    board_begin_frame(board);
    json_decref(picture);
}

/* Reads all that there is, in pieces. */
static const char *read_all(struct reader *r, size_t piece) {
    static char text[256 * 1024];
    size_t size = 0;
    ssize_t n;

    while ((n = reader_read(r, text + size, piece)) > 0)
        size += (size_t) n;
    TEST_INT(n, 0);
    text[size] = '\0';
    return text;
}

static unsigned count(const char *text, const char *word) {
    unsigned n = 0;

    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

static void test_changes(void) {
    struct reader *r;
    const char *text;

    draw(1, 0);
    TEST_INT(reader_new(&r, stream, "", on_wake, NULL), 0);
    text = read_all(r, 100);
    CU_ASSERT(strstr(text, "\"whole\":true") && strstr(text, "\"name\":\"db\"") && strstr(text, "\"name\":\"net\""));
    draw(2, 0);
    TEST_INT(n_wakes, 1);
    text = read_all(r, 7);
    CU_ASSERT(strstr(text, "\"whole\":false") && strstr(text, "\"name\":\"db\"") && !strstr(text, "\"name\":\"net\""));
    CU_ASSERT(strstr(text, "\"used\":2") != NULL);
    TEST_INT(count(text, "event: overview"), 1);
    reader_free(r);
    TEST_INT(stream_readers(stream), 0);
}

static void test_slow(void) {
    struct reader *slow, *other;
    const char *text;
    char byte;

    draw(1, 0);
    TEST_INT(reader_new(&slow, stream, "net", on_wake, NULL), 0);
    TEST_INT(reader_new(&other, stream, "", on_wake, NULL), 0);
    TEST_INT(reader_read(slow, &byte, 1), 1); /* it has begun this frame */
    read_all(other, 1000);
    for (int i = 0; i < 50; i++) {
        draw(2 + i % 2, i);
        CU_ASSERT(strstr(read_all(other, 1000), "\"whole\":false") != NULL);
    }
    text = read_all(slow, 1000); /* the rest of what it began, and the newest: one frame for 50 */
    TEST_INT(count(text, "event: overview"), 2);
    TEST_INT(count(text, "\"whole\":true,\"now_ms\""), 2);
    TEST_INT(count(text, "event: pool"), 2);
    CU_ASSERT(strstr(text, "\"used\":3") != NULL);
    reader_free(slow);
    reader_free(other);
}

static void test_bounds(void) {
    static struct reader *readers[STREAM_READERS_MAX];
    struct reader *more;
    const char *text;

    draw(1, 5000);
    for (unsigned i = 0; i < STREAM_READERS_MAX; i++)
        TEST_INT(reader_new(&readers[i], stream, "net", on_wake, NULL), 0);
    TEST_INT(reader_new(&more, stream, "net", on_wake, NULL), -EUSERS);
    text = read_all(readers[0], 4096);
    TEST_INT(count(text, "\"position\""), BOARD_CLAIMS_MAX);
    CU_ASSERT(strlen(text) < 64 * 1024);
    for (unsigned i = 0; i < STREAM_READERS_MAX; i++)
        reader_free(readers[i]);
}

static void test_gone(void) {
    struct reader *r;
    const char *text;

    draw(1, 0);
    TEST_INT(reader_new(&r, stream, "", on_wake, NULL), 0);
    read_all(r, 1000);
    board_set_away(board, "No such file or directory");
    stream_make_frame(stream);
    text = read_all(r, 1000);
    CU_ASSERT(strstr(text, "event: gone") && strstr(text, "No such file or directory") && !strstr(text, "event: overview"));
    draw(1, 0);
    CU_ASSERT(strstr(read_all(r, 1000), "event: overview") != NULL);
    reader_free(r);
}

static void test_events(void) {
    json_t *event = json_pack("{s:s, s:s, s:s, s:s, s:{}}", "at", "x:1", "time", "2026-01-01T00:00:00Z", "event", "granted", "message",
                              "<img src=x onerror=alert(1)>", "fields");
    struct reader *r;

    draw(1, 0);
    TEST_INT(reader_new(&r, stream, "", on_wake, NULL), 0);
    read_all(r, 1000);
    board_add_event(board, event);
    draw(1, 0);
    CU_ASSERT(strstr(read_all(r, 1000), "\"at\":\"x:1\"") != NULL);
    for (int i = 0; i < 500; i++)
        board_add_event(board, event);
    draw(1, 0);
    CU_ASSERT(strstr(read_all(r, 1000), "\"missed\":460") != NULL);
    reader_free(r);
    json_decref(event);
}

/* --- the last hour --- */

static json_t *bars_at(struct timeline *t, const char *pool, usec_t now, json_t **owner) {
    *owner = timeline_to_json(t, pool, now);
    return json_object_get(*owner, "bars");
}

static void see(struct timeline *t, int used, int waiting, usec_t now) {
    json_t *pools = picture_new(used, waiting);

    timeline_add_picture(t, json_object_get(pools, "pools"), now);
    json_decref(pools);
}

static void test_hour(void) {
    json_t *owner, *bars, *event = json_pack("{s:{s:s, s:s}}", "fields", "BERTH_RUN", "00000000000000000000000000000001", "BERTH_RESULT",
                                             "failure");
    struct timeline *t;

    TEST_INT(timeline_new(&t), 0);
    see(t, 2, 1, T0);
    see(t, 2, 0, T0 + USEC_PER_SEC);
    see(t, 0, 0, T0 + 5 * USEC_PER_SEC);
    timeline_add_event(t, event);
    bars = bars_at(t, "db", T0 + 6 * USEC_PER_SEC, &owner);
    TEST_INT(json_array_size(bars), 1);
    bars = json_array_get(bars, 0);
    TEST_STRING(json_string_value(json_array_get(bars, 2)), "load");
    TEST_INT(json_integer_value(json_array_get(bars, 3)), 2);
    TEST_INT(json_integer_value(json_array_get(bars, 5)), 999990500);
    TEST_INT(json_integer_value(json_array_get(bars, 6)), 1000005000);
    TEST_STRING(json_string_value(json_array_get(bars, 7)), "failure");
    json_decref(owner);
    bars = bars_at(t, "net", T0 + 6 * USEC_PER_SEC, &owner);
    TEST_INT(json_integer_value(json_array_get(json_array_get(bars, 0), 4)), 999999000);
    CU_ASSERT(json_is_null(json_array_get(json_array_get(bars, 0), 5)));
    json_decref(owner);
    see(t, 0, 0, T0 + TIMELINE_TIME + 10 * USEC_PER_SEC);
    bars = bars_at(t, "db", T0 + TIMELINE_TIME + 10 * USEC_PER_SEC, &owner);
    TEST_INT(json_array_size(bars), 0);
    json_decref(owner);
    json_decref(event);
    timeline_free(t);
}

/* Of many bars the newest are shown. */
static void test_many_bars(void) {
    json_t *queue = json_array(), *pool, *owner, *bars;
    struct timeline *t;

    for (int i = 0; i < TIMELINE_SHOWN_MAX + 7; i++)
        (void) json_array_append_new(queue, json_pack("{s:o, s:s, s:s, s:i, s:i}", "claim", json_sprintf("%d", i), "host", "bee", "name", "job",
                                                      "permits", 1, "waiting_ms", 5));
    pool = json_pack("[{s:s, s:i, s:i, s:[], s:o}]", "name", "db", "used", 0, "waiting", TIMELINE_SHOWN_MAX + 7, "holders", "queue", queue);
    TEST_INT(timeline_new(&t), 0);
    timeline_add_picture(t, pool, T0);
    bars = bars_at(t, "db", T0 + USEC_PER_SEC, &owner);
    TEST_INT(json_array_size(bars), TIMELINE_SHOWN_MAX);
    TEST_STRING(json_string_value(json_array_get(json_array_get(bars, 0), 0)), "7");
    TEST_INT(json_integer_value(json_object_get(owner, "dropped")), 7);
    json_decref(owner);
    json_decref(pool);
    timeline_free(t);
}

static CU_TestInfo tests[] = {{"changes", test_changes}, {"slow", test_slow},     {"bounds", test_bounds}, {"gone", test_gone},
                              {"events", test_events},   {"hour", test_hour}, {"many bars", test_many_bars},
                              {"a silent host is late", test_late}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "web-stream", .pSetUpFunc = set_up, .pTearDownFunc = tear_down, .pTests = tests});

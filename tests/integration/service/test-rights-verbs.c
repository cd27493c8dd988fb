/* SPDX-License-Identifier: MIT */

/* Rights of a real berthd: each method for each kind of caller. */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/socket.h"
#include "daemon/api/verbs.h"
#include "tests/harness/host/callers.h"

#define NO_RUN "\"run\":\"00000000000000000000000000000000\""

static const struct row {
    const char *method, *params, *expected; /* y or n for OTHER, RUNNER, OPERATOR, JOB_OPERATOR, POOL_USER, ROOT */
} rows[] = {
    {"Version", "{}", "yyyyyy"},
    {"Pools", "{}", "yyyyyy"},
    {"Hosts", "{}", "yyyyyy"},
    {"Look", "{}", "yyyyyy"},
    {"Redis", "{}", "yyyyyy"},
    {"Metrics", "{}", "yyyyyy"},
    {"Jobs", "{}", "yyyyyy"},
    {"Next", "{}", "yyyyyy"},
    {"Events", "{}", "yyyyyy"},
    {"Runs", "{\"all\":true}", "yyyyyy"},
    {"Start", "{\"job\":\"db\"}", "nnyyny"},
    {"Start", "{\"job\":\"plain\"}", "nnynny"},
    {"Start", "{\"job\":\"each@x\"}", "nnyyny"},
    {"Start", "{\"job\":\"unknown\"}", "yyyyyy"}, /* everybody may see that there is no such job */
    {"Find", "{\"names\":[\"db\"]}", "yyyyyy"},
    {"Await", "{" NO_RUN "}", "yyyyyy"},
    {"Stop", "{\"target\":\"db\"}", "nnyyny"},
    {"Stop", "{\"target\":\"plain\"}", "nnynny"},
    {"Stop", "{\"target\":\"unknown\"}", "yyyyyy"},
    {"Stop", "{\"target\":\"00000000000000000000000000000000\"}", "yyyyyy"},
    {"Reload", "{}", "nnynny"},
    {"Drain", "{}", "nnynny"},
    {"Undrain", "{}", "nnynny"},
    {"SetLimit", "{\"pool\":\"open\",\"limit\":3}", "nnynny"},
    {"ClearLimit", "{\"pool\":\"open\"}", "nnynny"},
    {"Pause", "{\"pool\":\"open\"}", "nnynny"},
    {"Resume", "{\"pool\":\"open\"}", "nnynny"},
    {"Revoke", "{\"claim\":\"00000000000000000000000000000000\"}", "nnynny"},
    {"Move", "{\"claim\":\"00000000000000000000000000000000\",\"kind\":\"first\"}", "nnynny"},
    {"AcceptNamespace", "{}", "nnynny"},
    {"EndGrace", "{}", "nnynny"},
    {"Hold", "{\"name\":\"a\",\"nowait\":true,\"pools\":[\"open\"]}", "nyynyy"},
    {"Hold", "{\"name\":\"a\",\"nowait\":true,\"pools\":[\"narrow\"]}", "nnynyy"},
    {"Hold", "{\"name\":\"a\",\"nowait\":true,\"pools\":[\"open\",\"narrow\"]}", "nnynyy"},
    {"Hold", "{\"name\":\"a\",\"nowait\":true,\"pools\":[\"open\"],\"head_start_ms\":300000}", "nyynyy"},
    {"Hold", "{\"name\":\"a\",\"nowait\":true,\"pools\":[\"open\"],\"head_start_ms\":300001}", "nnynny"},
    {"Hold", "{\"name\":\"a\",\"pools\":[\"open\"]," NO_RUN "}", "yyyyyy"}, /* attaches to a run that does not exist */
    {"Started", "{\"pid\":1," NO_RUN "}", "yyyyyy"},
    {"Stuck", "{\"what\":\"x\"," NO_RUN "}", "yyyyyy"},
    {"Ended", "{\"code\":0," NO_RUN "}", "yyyyyy"},
};

static void matrix(void) {
    NEEDS_OTHERS();
    for (const struct row *row = rows; row < rows + ELEMENTSOF(rows); row++) {
        char actual[256], expected[256], answers[N_WHO + 1] = "";

        for (size_t who = 0; who < N_WHO; who++)
            answers[who] = caller_may((enum who) who, row->method, row->params) ? 'y' : 'n';
        snprintf(actual, sizeof(actual), "%s %s: %s", row->method, row->params, answers);
        snprintf(expected, sizeof(expected), "%s %s: %s", row->method, row->params, row->expected);
        TEST_STRING(actual, expected);
    }
}

/* --- look.sock --- */

static const char *look_path(void) {
    static char path[128];

    snprintf(path, sizeof(path), "%s/look.sock", callers_host->runtime);
    return path;
}

static enum right right_of(const char *method) {
    for (const struct control_method *m = verbs_service.methods; m->name; m++)
        if (strcmp(m->name + strlen("io.berth."), method) == 0)
            return m->right;
    return RIGHT_MISSING;
}

/* No caller may do more than look there. */
static void matrix_of_look(void) {
    NEEDS_OTHERS();
    TEST_INT(chmod(look_path(), 0666), 0);
    host_mark(callers_host);
    for (const struct row *row = rows; row < rows + ELEMENTSOF(rows); row++)
        for (size_t who = 0; who < N_WHO; who++) {
            bool is_look = right_of(row->method) == RIGHT_LOOK;
            int fd = caller_connect((enum who) who, look_path());
            const char *text = caller_call(fd, row->method, row->params, strcmp(row->method, "Hold") == 0);

            TEST_STRING(strstr(text, "NotAllowed") ? "refused" : row->method, is_look ? row->method : "refused");
            CU_ASSERT(is_look || strstr(text, "you may only look, because you are connected to look.sock"));
            close(fd);
        }
    TEST_INT(berth(callers_host, "pools"), 0);
    CU_ASSERT_PTR_NULL(strstr(host_log(callers_host), "job=db"));
}

/* Each method has a row above. */
static void matrix_is_whole(void) {
    for (const struct control_method *m = verbs_service.methods; m->name; m++) {
        bool found = false;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
            found |= strcmp(rows[i].method, m->name + strlen("io.berth.")) == 0;
        TEST_STRING(found ? m->name : "not in the matrix", m->name);
    }
}

/* --- more than rights --- */

/* Methods that change something log the caller and on whose behalf it acts. No other method takes
 * on_behalf. */
static void recorded(void) {
    static const char *const methods[][2] = {{"Start", "\"job\":\"plain\","}, {"Stop", "\"target\":\"plain\","}, {"Reload", ""}, {"SetLimit", "\"pool\":\"open\",\"limit\":3,"}, {"ClearLimit", "\"pool\":\"open\","},
        {"Pause", "\"pool\":\"open\",\"reason\":\"x\","}, {"Resume", "\"pool\":\"open\","}};
    char params[256];

    NEEDS_OTHERS();
    for (size_t i = 0; i < ELEMENTSOF(methods); i++) {
        host_mark(callers_host);
        snprintf(params, sizeof(params), "{%s\"on_behalf\":\"alice@example.net\"}", methods[i][1]);
        CU_ASSERT(caller_may(OPERATOR, methods[i][0], params));
        host_await(callers_host, "operated", "uid=64003 on_behalf=alice@example.net method=%s", methods[i][0]);
    }
    CU_ASSERT(caller_may(OPERATOR, "Drain", "{\"on_behalf\":\"alice\"}"));
    host_await(callers_host, "drained", "uid=64003 on_behalf=alice");
    CU_ASSERT(caller_may(OPERATOR, "Undrain", "{\"on_behalf\":\"bob\"}"));
    host_await(callers_host, "undrained", "uid=64003 on_behalf=bob");
    host_mark(callers_host);
    CU_ASSERT(!caller_may(RUNNER, "Pause", "{\"pool\":\"open\",\"on_behalf\":\"alice\"}"));
    CU_ASSERT(caller_may(OTHER, "Start", "{\"job\":\"unknown\",\"on_behalf\":\"alice\"}"));
    TEST_INT(berth_end(caller_start(OPERATOR, "pause open")), 0);
    TEST_STRING(event_get(host_await(callers_host, "operated", "uid=64003 method=Pause pools=open"), "on_behalf"), "");
    TEST_INT(host_count(callers_host, "operated", "on_behalf=alice"), 0);
    TEST_INT(berth_end(caller_start(OPERATOR, "resume open")), 0);
}

static void person(void) {
    static const char *const bad[] = {"\"\"", "1", "\"a\\nb\"", "\"a\\u009bb\"",
        "\"01234567890123456789012345678901234567890123456789012345678901234\""};
    char params[256];

    NEEDS_OTHERS();
    for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
        int fd = caller_connect(OPERATOR, callers_host->socket);

        snprintf(params, sizeof(params), "{\"pool\":\"open\",\"on_behalf\":%s}", bad[i]);
        CU_ASSERT_PTR_NOT_NULL(strstr(caller_call(fd, "Resume", params, false), "InvalidParameter"));
        close(fd);
    }
    int fd = caller_connect(OPERATOR, callers_host->socket);

    CU_ASSERT_PTR_NOT_NULL(strstr(caller_call(fd, "Pools", "{\"on_behalf\":\"alice\"}", false), "InvalidParameter"));
    close(fd);
}

/* berthd was stopped, and its sockets are left: it is away, and the caller does not lack a right. */
static void berthd_gone(void) {
    char aside[140];
    int fd;

    snprintf(aside, sizeof(aside), "%s.aside", look_path());
    TEST_INT(rename(look_path(), aside), 0);
    fd = socket_listen(look_path(), SOCK_STREAM, 0666);
    close(fd);
    TEST_INT(berth_end(caller_start(OTHER, "pools")), 69);
    TEST_INT(rename(aside, look_path()), 0);
}

/* Callers that may not use control.sock look by look.sock, if they may use that. */
static void look(void) {
    char keeps_out[300];

    NEEDS_OTHERS();
    TEST_INT(chmod(callers_host->socket, 0660), 0);
    TEST_INT(chmod(look_path(), 0660), 0);
    snprintf(keeps_out, sizeof(keeps_out),
             "berth: not allowed to use %s (root and the group \"berth\" are; the group \"berth-look\" may look)\n", callers_host->socket);
    caller_refused(OTHER, "pools", keeps_out);
    TEST_INT(chmod(look_path(), 0666), 0);
    TEST_INT(berth_end(caller_start(OTHER, "pools")), 0);
    TEST_INT(berth_end(caller_start(OTHER, "runs --all")), 0);
    caller_refused(OTHER, "limit open 9",
            "berth: limit: you may only look, because you are connected to look.sock; other calls need control.sock\n");
    caller_refused(OTHER, "run -p open -- true",
            "berth: run: you may only look, because you are connected to look.sock; other calls need control.sock\n");
    berthd_gone();
    snprintf(keeps_out, sizeof(keeps_out), "--socket %s pools", callers_host->socket); /* no other socket is tried */
    TEST_INT(berth_end(caller_start(OTHER, keeps_out)), 77);
}

/* A reload changes the rights of an open connection. */
static void reload(void) {
    int fd;

    NEEDS_OTHERS();
    fd = caller_connect(OPERATOR, callers_host->socket);
    CU_ASSERT_PTR_NULL(strstr(caller_call(fd, "Pause", "{\"pool\":\"open\"}", false), "NotAllowed"));
    host_set_config(callers_host, "operate-group = \"" DBA "\"\n" POOLS JOBS);
    TEST_INT(berth(callers_host, "reload"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(caller_call(fd, "Resume", "{\"pool\":\"open\"}", false), "\"right\":\"operate\""));
    close(fd);
    CU_ASSERT(caller_may(JOB_OPERATOR, "Resume", "{\"pool\":\"open\"}"));
}

static CU_TestInfo tests[] = {
    {"matrix", matrix},
    {"matrix is whole", matrix_is_whole},
    {"matrix of look.sock", matrix_of_look},
    {"look.sock instead", look},
    {"recorded with the caller", recorded},
    {"a person's name", person},
    {"reload", reload},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "rights of methods", .pSetUpFunc = callers_up, .pTearDownFunc = cluster_down,
             .pTests = tests});

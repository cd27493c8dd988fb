/* SPDX-License-Identifier: MIT */

/* Who may what, asked of a real berthd by connections of other users: each method for each kind of caller, and what `berth` prints. */

#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/socket.h"
#include "daemon/api/verbs.h"
#include "tests/harness/host.h"
#include "tests/harness/test.h"

/* Groups that Debian always has, for the roles of this test. */
#define RUNNERS "games"
#define OPERATORS "staff"
#define USERS "audio"
#define DBA "video"

#define TOP "run-group = \"" RUNNERS "\"\noperate-group = \"" OPERATORS "\"\n"
#define POOLS                                                       \
    "pool \"open\" { limit = 4 scope = \"host\" }\n"                  \
    "pool \"narrow\" { limit = 4 scope = \"host\" users = {\"@" USERS "\"} }\n"
#define TRUE(name, more) "job \"" name "\" { command = {\"/bin/true\"} output = \"null\" " more "}\n"
#define JOBS TRUE("db", "operators = {\"@" DBA "\"} ") TRUE("plain", "")

enum who { OTHER, RUNNER, OPERATOR, JOB_OPERATOR, POOL_USER, ROOT, N_WHO };

static struct {
    uid_t uid;
    const char *groups[2];
    char numbers[32]; /* of the groups, as setpriv(1) takes them */
} callers[N_WHO] = {
    [OTHER] = {.uid = 64001},
    [RUNNER] = {.uid = 64002, .groups = {RUNNERS}},
    [OPERATOR] = {.uid = 64003, .groups = {OPERATORS}},
    [JOB_OPERATOR] = {.uid = 64004, .groups = {DBA}},
    [POOL_USER] = {.uid = 64005, .groups = {RUNNERS, USERS}},
    [ROOT] = {.uid = 0},
};

static struct host *ant;
static bool is_possible;

static void up(void) {
    is_possible = geteuid() == 0;
    for (size_t who = 0; who < N_WHO; who++) {
        callers[who].numbers[0] = '\0';
        for (size_t i = 0; i < 2 && callers[who].groups[i]; i++) {
            const struct group *g = getgrnam(callers[who].groups[i]);
            size_t n = strlen(callers[who].numbers);

            is_possible &= g != NULL;
            if (g)
                snprintf(callers[who].numbers + n, sizeof(callers[who].numbers) - n, "%s%u", i > 0 ? "," : "", (unsigned) g->gr_gid);
        }
    }
    cluster_up_without_redis();
    ant = host_add_alone("ant", TOP POOLS JOBS);
    host_start(ant);
    TEST_INT(chmod(ant->socket, 0666), 0);
}

#define NEEDS_OTHERS     \
    TEST_NEEDS_ROOT();   \
    if (!is_possible)    \
    TEST_SKIP("needs the groups games, staff, audio, video")

/* --- a connection of a caller, and one call on it --- */

static int connect_as_to(enum who who, const char *path) {
    gid_t before[256], groups[2];
    int n = getgroups(ELEMENTSOF(before), before), fd;
    size_t n_groups = 0;

    for (; n_groups < 2 && callers[who].groups[n_groups]; n_groups++)
        groups[n_groups] = getgrnam(callers[who].groups[n_groups])->gr_gid;
    TEST_INT(setgroups(n_groups, groups), 0);
    TEST_INT(setegid(who == ROOT ? 0 : 65534), 0);
    TEST_INT(seteuid(callers[who].uid), 0);
    fd = socket_connect(path, SOCK_STREAM);
    TEST_INT(seteuid(0), 0);
    TEST_INT(setegid(0), 0);
    TEST_INT(setgroups((size_t) n, before), 0);
    TEST_FATAL(fd >= 0, "no connection");
    return fd;
}

static int connect_as(enum who who) {
    return connect_as_to(who, ant->socket);
}

/* The first answer. */
static const char *call_on(int fd, const char *method, const char *params, bool more) {
    static char text[65536];
    size_t size = 0;
    int n = snprintf(text, sizeof(text), "{\"method\":\"io.berth.%s\",\"parameters\":%s%s}", method, params, more ? ",\"more\":true" : "");

    TEST_INT(send(fd, text, (size_t) n + 1, MSG_NOSIGNAL), n + 1);
    do {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t got;

        TEST_FATAL(poll(&p, 1, (int) (HOST_PATIENCE / USEC_PER_MSEC)) == 1, "no answer");
        got = recv(fd, text + size, sizeof(text) - size, 0);
        TEST_FATAL(got > 0, "the connection has ended");
        size += (size_t) got;
    } while (text[size - 1] != '\0' && size < sizeof(text));
    return text;
}

static bool may(enum who who, const char *method, const char *params) {
    int fd = connect_as(who);
    bool is_refused = strstr(call_on(fd, method, params, strcmp(method, "Hold") == 0), "\"io.berth.NotAllowed\"") != NULL;

    close(fd);
    return !is_refused;
}

/* --- each method --- */

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
    {"Start", "{\"job\":\"unknown\"}", "yyyyyy"}, /* that there is no such job everybody may see */
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
    {"Hold", "{\"name\":\"a\",\"pools\":[\"open\"]," NO_RUN "}", "yyyyyy"}, /* about a run of the caller's, which there is not */
    {"Started", "{\"pid\":1," NO_RUN "}", "yyyyyy"},
    {"Ended", "{\"code\":0," NO_RUN "}", "yyyyyy"},
};

static void matrix(void) {
    NEEDS_OTHERS;
    for (const struct row *row = rows; row < rows + ELEMENTSOF(rows); row++) {
        char actual[256], expected[256], answers[N_WHO + 1] = "";

        for (size_t who = 0; who < N_WHO; who++)
            answers[who] = may((enum who) who, row->method, row->params) ? 'y' : 'n';
        snprintf(actual, sizeof(actual), "%s %s: %s", row->method, row->params, answers);
        snprintf(expected, sizeof(expected), "%s %s: %s", row->method, row->params, row->expected);
        TEST_STRING(actual, expected);
    }
}

/* --- look.sock --- */

static const char *look_path(void) {
    static char path[128];

    snprintf(path, sizeof(path), "%s/look.sock", ant->runtime);
    return path;
}

static enum right right_of(const char *method) {
    for (const struct control_method *m = verbs_service.methods; m->name; m++)
        if (strcmp(m->name + strlen("io.berth."), method) == 0)
            return m->right;
    return RIGHT_MISSING;
}

/* There nobody does more than look, whoever it is. */
static void matrix_of_look(void) {
    NEEDS_OTHERS;
    TEST_INT(chmod(look_path(), 0666), 0);
    host_mark(ant);
    for (const struct row *row = rows; row < rows + ELEMENTSOF(rows); row++)
        for (size_t who = 0; who < N_WHO; who++) {
            bool is_look = right_of(row->method) == RIGHT_LOOK;
            int fd = connect_as_to((enum who) who, look_path());
            const char *text = call_on(fd, row->method, row->params, strcmp(row->method, "Hold") == 0);

            TEST_STRING(strstr(text, "NotAllowed") ? "refused" : row->method, is_look ? row->method : "refused");
            CU_ASSERT(is_look || strstr(text, "you may only look, because you are connected to look.sock"));
            close(fd);
        }
    TEST_INT(berth(ant, "pools"), 0);
    CU_ASSERT_PTR_NULL(strstr(host_log(ant), "job=db"));
}

/* A method that is new must get its rows above. */
static void matrix_is_whole(void) {
    for (const struct control_method *m = verbs_service.methods; m->name; m++) {
        bool found = false;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
            found |= strcmp(rows[i].method, m->name + strlen("io.berth.")) == 0;
        TEST_STRING(found ? m->name : "not in the matrix", m->name);
    }
}

/* --- what `berth` prints --- */

static struct child *start_as(enum who who, const char *words) {
    char program[300], socket[128], copy[256], *rest = copy, *argv[32] = {program};
    char *environment[] = {socket, NULL};
    size_t n = 1;

    snprintf(program, sizeof(program), "%s/berth", cluster.build);
    snprintf(socket, sizeof(socket), "BERTH_SOCKET=%s", ant->socket);
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *word; n + 1 < ELEMENTSOF(argv) && (word = strsep(&rest, " "));)
        argv[n++] = word;
    return child_start_as(callers[who].uid, callers[who].numbers, argv, environment);
}

static void refused(enum who who, const char *words, const char *expected) {
    TEST_INT(berth_end(start_as(who, words)), 77);
    TEST_STRING(berth_err, expected);
}

/* What changes something is recorded with who asked, and for whom. Nothing else takes a person. */
static void recorded(void) {
    static const char *const methods[][2] = {{"Start", "\"job\":\"plain\","}, {"Stop", "\"target\":\"plain\","}, {"Reload", ""}, {"SetLimit", "\"pool\":\"open\",\"limit\":3,"}, {"ClearLimit", "\"pool\":\"open\","},
        {"Pause", "\"pool\":\"open\",\"reason\":\"x\","}, {"Resume", "\"pool\":\"open\","}};
    char params[256];

    NEEDS_OTHERS;
    for (size_t i = 0; i < ELEMENTSOF(methods); i++) {
        host_mark(ant);
        snprintf(params, sizeof(params), "{%s\"on_behalf\":\"alice@example.net\"}", methods[i][1]);
        CU_ASSERT(may(OPERATOR, methods[i][0], params));
        host_await(ant, "operated", "uid=64003 on_behalf=alice@example.net method=%s", methods[i][0]);
    }
    CU_ASSERT(may(OPERATOR, "Drain", "{\"on_behalf\":\"alice\"}"));
    host_await(ant, "drained", "uid=64003 on_behalf=alice");
    CU_ASSERT(may(OPERATOR, "Undrain", "{\"on_behalf\":\"bob\"}"));
    host_await(ant, "undrained", "uid=64003 on_behalf=bob");
    host_mark(ant);
    CU_ASSERT(!may(RUNNER, "Pause", "{\"pool\":\"open\",\"on_behalf\":\"alice\"}"));
    CU_ASSERT(may(OTHER, "Start", "{\"job\":\"unknown\",\"on_behalf\":\"alice\"}"));
    TEST_INT(berth_end(start_as(OPERATOR, "pause open")), 0);
    TEST_STRING(event_get(host_await(ant, "operated", "uid=64003 method=Pause pools=open"), "on_behalf"), "");
    TEST_INT(host_count(ant, "operated", "on_behalf=alice"), 0);
    TEST_INT(berth_end(start_as(OPERATOR, "resume open")), 0);
}

static void person(void) {
    static const char *const bad[] = {"\"\"", "1", "\"a\\nb\"", "\"a\\u009bb\"",
        "\"01234567890123456789012345678901234567890123456789012345678901234\""};
    char params[256];

    NEEDS_OTHERS;
    for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
        int fd = connect_as(OPERATOR);

        snprintf(params, sizeof(params), "{\"pool\":\"open\",\"on_behalf\":%s}", bad[i]);
        CU_ASSERT_PTR_NOT_NULL(strstr(call_on(fd, "Resume", params, false), "InvalidParameter"));
        close(fd);
    }
    int fd = connect_as(OPERATOR);

    CU_ASSERT_PTR_NOT_NULL(strstr(call_on(fd, "Pools", "{\"on_behalf\":\"alice\"}", false), "InvalidParameter"));
    close(fd);
}

/* Whom control.sock keeps out looks by look.sock, if that lets them in. */
static void look(void) {
    char keeps_out[300];

    NEEDS_OTHERS;
    TEST_INT(chmod(ant->socket, 0660), 0);
    TEST_INT(chmod(look_path(), 0660), 0);
    snprintf(keeps_out, sizeof(keeps_out),
             "berth: not allowed to use %s (root and the group \"berth\" are; the group \"berth-look\" may look)\n", ant->socket);
    refused(OTHER, "pools", keeps_out);
    TEST_INT(chmod(look_path(), 0666), 0);
    TEST_INT(berth_end(start_as(OTHER, "pools")), 0);
    TEST_INT(berth_end(start_as(OTHER, "runs --all")), 0);
    refused(OTHER, "limit open 9",
            "berth: limit: you may only look, because you are connected to look.sock; other calls need control.sock\n");
    refused(OTHER, "run -p open -- true",
            "berth: run: you may only look, because you are connected to look.sock; other calls need control.sock\n");
    snprintf(keeps_out, sizeof(keeps_out), "--socket %s pools", ant->socket); /* which is taken as it is */
    TEST_INT(berth_end(start_as(OTHER, keeps_out)), 77);
}

#define HAVE_OPERATE "root and members of group " OPERATORS " have it\n"

static void words(void) {
    NEEDS_OTHERS;
    refused(RUNNER, "limit open 9", "berth: limit: you need the right to operate; " HAVE_OPERATE);
    refused(OTHER, "grace --end", "berth: grace: you need the right to operate; " HAVE_OPERATE);
    refused(OTHER, "run -p open -- true",
            "berth: run: you need the right to run; root, members of group " OPERATORS " and members of group " RUNNERS " have it\n");
    refused(RUNNER, "start plain", "berth: start: you need the right to operate job plain; " HAVE_OPERATE);
    refused(RUNNER, "stop db",
            "berth: stop: you need the right to operate job db; root, members of group " OPERATORS " and members of group " DBA " have it\n");
    TEST_INT(berth_end(start_as(JOB_OPERATOR, "start --wait db")), 0);
    TEST_INT(berth_end(start_as(OTHER, "pools")), 0);
}

static void pools(void) {
    NEEDS_OTHERS;
    refused(RUNNER, "run -p open -p narrow -- true",
            "berth: run: you need the right to run on pool narrow; root, members of group " OPERATORS " and members of group " USERS
            " have it\n");
    TEST_INT(berth_end(start_as(POOL_USER, "run -p open -p narrow -- true")), 0);
    TEST_INT(berth_end(start_as(OPERATOR, "run -p narrow -- true")), 0);
}

/* The options of a pattern are those of its keys, but not of one that the config has in full. */
static void patterns(void) {
    NEEDS_OTHERS;
    host_set_config(ant, TOP "pool \"team/*\" { limit = 4 scope = \"host\" users = {\"@" USERS
                             "\"} head-start-max = \"1m\" }\n"
                             "pool \"team/all\" { limit = 4 scope = \"host\" }\n");
    TEST_INT(berth(ant, "reload"), 0);
    refused(RUNNER, "run -p team/a -- true",
            "berth: run: you need the right to run on pool team/*; root, members of group " OPERATORS
            " and members of group " USERS " have it\n");
    refused(RUNNER, "run -p team/all -p team/b -- true",
            "berth: run: you need the right to run on pool team/*; root, members of group " OPERATORS
            " and members of group " USERS " have it\n");
    refused(POOL_USER, "run --head-start 61s -p team/a -- true",
            "berth: run: pool team/* allows a head start of at most 1m (head-start-max); for more you need "
            "the right to operate; " HAVE_OPERATE);
    TEST_INT(berth_end(start_as(POOL_USER, "run --head-start 1m -p team/a -- true")), 0);
    TEST_INT(berth_end(start_as(RUNNER, "run --head-start 61s -p team/all -- true")), 0);
    TEST_INT(berth_end(start_as(OPERATOR, "run --head-start 61s -p team/a -- true")), 0);
}

static void head_start(void) {
    NEEDS_OTHERS;
    refused(RUNNER, "run --head-start 300d -p open -- true",
            "berth: run: pool open allows a head start of at most 5m (head-start-max); for more you need the right to operate; " HAVE_OPERATE);
    TEST_INT(berth_end(start_as(RUNNER, "run --head-start 5m -p open -- true")), 0);
    TEST_INT(berth_end(start_as(OPERATOR, "run --head-start 300d -p open -- true")), 0);
    host_set_config(ant, TOP "pool open { limit = 1 scope = host head-start-max = 0s }\n");
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth_end(start_as(RUNNER, "run --head-start 1ms -p open -- true")), 77);
    TEST_INT(berth_end(start_as(RUNNER, "run -p open -- true")), 0);
}

/* --- one's own runs --- */

static struct child *start_own(char run[static 64]) {
    struct child *c;

    host_mark(ant);
    c = start_as(RUNNER, "run -p open --name own -- sleep 1000");
    snprintf(run, 64, "%s", event_get(host_await(ant, "started", "job=own"), "run"));
    return c;
}

static void own_runs(void) {
    char run[64], stop[80];
    struct child *c;

    NEEDS_OTHERS;
    c = start_own(run);
    snprintf(stop, sizeof(stop), "stop %s", run);
    refused(POOL_USER, stop, "berth: stop: you need the right to operate to stop a run of another user; " HAVE_OPERATE);
    refused(JOB_OPERATOR, stop, "berth: stop: you need the right to operate to stop a run of another user; " HAVE_OPERATE);
    CU_ASSERT(!c->ended);
    TEST_INT(berth_end(start_as(RUNNER, stop)), 0);
    TEST_INT(berth_end(c), 143);
    c = start_own(run);
    snprintf(stop, sizeof(stop), "stop %s", run);
    TEST_INT(berth_end(start_as(OPERATOR, stop)), 0);
    TEST_INT(berth_end(c), 143);
}

static void write_file(const char *path, const char *a, const char *b, const char *c) {
    FILE *f = fopen(path, "we");

    TEST_FATAL(f != NULL, "no file");
    fprintf(f, "%s%s%s\n", a, b, c);
    TEST_INT(fclose(f), 0);
}

/* A user who loses the right keeps the run and gets its end, and begins nothing more. */
static void right_lost(void) {
    char go[80], script[80], words[200];
    struct child *c;

    NEEDS_OTHERS;
    snprintf(go, sizeof(go), "%s/go", cluster.folder);
    TEST_INT(mkfifo(go, 0666), 0);
    TEST_INT(chmod(go, 0666), 0);
    snprintf(script, sizeof(script), "%s/script", cluster.folder);
    write_file(script, "read line <", go, "; exit 3");
    snprintf(words, sizeof(words), "run -p open --name late -- sh %s", script);
    c = start_as(RUNNER, words);
    host_await(ant, "started", "job=late");
    host_set_config(ant, "run-group = \"\"\n" POOLS JOBS);
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth_end(start_as(RUNNER, "run -p open -- true")), 77);
    write_file(go, "now", "", "");
    TEST_INT(berth_end(c), 3);
    host_await(ant, "exited", "job=late exit_code=3");
}

/* One connection, before and after. */
static void reload(void) {
    int fd;

    NEEDS_OTHERS;
    fd = connect_as(OPERATOR);
    CU_ASSERT_PTR_NULL(strstr(call_on(fd, "Pause", "{\"pool\":\"open\"}", false), "NotAllowed"));
    host_set_config(ant, "operate-group = \"" DBA "\"\n" POOLS JOBS);
    TEST_INT(berth(ant, "reload"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(call_on(fd, "Resume", "{\"pool\":\"open\"}", false), "\"right\":\"operate\""));
    close(fd);
    CU_ASSERT(may(JOB_OPERATOR, "Resume", "{\"pool\":\"open\"}"));
}

/* --- inside a run --- */

/* What runs in a job has the rights of its own user and groups: neither those of the job's operators nor those of who started it. */
static void nested(void) {
    char copy[256];

    NEEDS_OTHERS;
    snprintf(copy, sizeof(copy), "cp %s/berth %s/berth && chmod 0755 %s %s/berth", cluster.build, cluster.folder, cluster.folder, cluster.folder);
    TEST_INT(system(copy), 0);
    host_set_config(ant, TOP POOLS JOBS
                    "job \"outer\" { pools = {\"open\"} user = \"nobody\" group = \"" RUNNERS "\" operators = {\"@" DBA "\"} output = \"null\"\n"
                    "command = {\"/bin/sh\", \"-c\", '"
                    "b=\"%s/berth --socket %s\"; "
                    "$b run -p open -- true || exit 1; "
                    "$b stop outer; [ $? -eq 77 ] || exit 2; "
                    "$b start db; [ $? -eq 77 ] || exit 3; "
                    "$b run -n -p narrow -- true; [ $? -eq 77 ] || exit 4; "
                    "$b limit open 9; [ $? -eq 77 ] || exit 5; "
                    "$b run -p open -- $b stop $BERTH_RUN; [ $? -eq 77 ] || exit 6; "
                    "exit 42'} }\n", cluster.folder, ant->socket);
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth_end(start_as(JOB_OPERATOR, "start --wait outer")), 42);
    snprintf(copy, sizeof(copy), "%s/berth", cluster.folder);
    TEST_INT(unlink(copy), 0);
}

/* --- the config --- */

static void check_config(void) {
    host_set_config(ant, POOLS "job j { command = {\"/bin/true\"}\noperators = {\"berth-no-user\"} }\n");
    TEST_INT(berth(ant, "check-config %s", ant->config), 78);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, ":9: job \"j\": operators: there is no user \"berth-no-user\" on this machine"));
    TEST_INT(berth(ant, "reload"), 0); /* a service does without, and warns */
    CU_ASSERT_PTR_NOT_NULL(strstr(host_log(ant), "operators: there is no user \"berth-no-user\" on this machine"));
}

static CU_TestInfo tests[] = {
    {"matrix", matrix},
    {"matrix is whole", matrix_is_whole},
    {"recorded with who asked", recorded},
    {"a person's name", person},
    {"matrix of look.sock", matrix_of_look},
    {"look.sock instead", look},
    {"words", words},
    {"pools", pools},
    {"patterns", patterns},
    {"head start", head_start},
    {"own runs", own_runs},
    {"right lost", right_lost},
    {"reload", reload},
    {"nested", nested},
    {"check-config", check_config},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "rights of verbs", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}

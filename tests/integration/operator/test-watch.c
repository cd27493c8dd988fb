/* SPDX-License-Identifier: MIT */

/* `berth watch` and io.berth.Events: the events it prints, where a stream begins, and who may read it.
 * Readers that stop reading are in test-watch-slow. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS                                                                                               \
    "pool \"db\" { limit = 4 scope = \"host\" }\npool \"net\" { limit = 4 scope = \"host\" }\n"             \
    "pool \"tenant/*\" { limit = 1 scope = \"host\" }\n"

static struct host *ant_up(void) {
    struct host *ant = host_add_alone("ant", "%s", POOLS);

    host_start(ant);
    return ant;
}

/* --- awaiting --- */

static bool has_readers(struct host *h, int n) {
    char line[64];

    (void) snprintf(line, sizeof(line), "\nberth_watchers %d\n", n);
    return berth(h, "metrics") == 0 && strstr(berth_out, line);
}

static void await_readers(struct host *h, int n) {
    usec_t until = usec_add(clock_boottime(), HOST_PATIENCE);

    while (!has_readers(h, n))
        TEST_FATAL(clock_boottime() < until, "another number of readers");
}

/* Starts `berth watch` and waits until berthd serves it. */
static struct child *watch_start(struct host *h, const char *options) {
    struct child *c = berth_start(h, "watch %s", options);

    await_readers(h, 1);
    return c;
}

static void await_text(const struct child *c, const char *text) {
    usec_t until = usec_add(clock_boottime(), HOST_PATIENCE);

    while (!strstr(child_text(c, 1), text)) {
        TEST_FATAL(clock_boottime() < until, text);
        child_turn(until);
    }
}

static void await_lines(const struct child *c, unsigned n) {
    usec_t until = usec_add(clock_boottime(), HOST_PATIENCE);

    for (unsigned printed = 0; printed < n; child_turn(until)) {
        printed = 0;
        for (const char *at = child_text(c, 1); (at = strchr(at, '\n')); at++)
            printed++;
        if (printed >= n)
            break;
        TEST_FATAL(clock_boottime() < until, "lines are missing");
    }
}

/* Interrupts a `berth watch`. Its output is in berth_out then. */
static void watch_end(struct child *c) {
    child_kill(c, SIGINT);
    TEST_INT(berth_end(c), 128 + SIGINT);
}

/* Returns line n (from 0) of the last output as JSON, or NULL if there are fewer. The caller frees it. */
static json_t *find_line(unsigned n) {
    const char *line = berth_out;

    while (n-- > 0 && line)
        line = (line = strchr(line, '\n')) ? line + 1 : NULL;
    return line ? json_loads(line, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

static json_t *line_of(unsigned n) {
    json_t *line = find_line(n);

    TEST_FATAL(line != NULL, "the line is not there");
    return line;
}

/* Returns the names of the events in the last output of --json: "granted started". */
static const char *names_of_lines(void) {
    static char names[1024];
    json_t *line;

    names[0] = '\0';
    for (unsigned i = 0; (line = find_line(i)); i++) {
        size_t n = strlen(names);

        (void) snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? " " : "",
                        json_string_value(berth_at(line, "event")));
        json_decref(line);
    }
    return names;
}

/* --- lines --- */

static void test_json(void) {
    struct host *ant = ant_up();
    struct child *watch = watch_start(ant, "--json -n 4");
    json_t *line;

    TEST_INT(berth(ant, "run --name 007 -p db:2 -p net -- false"), 1);
    TEST_INT(berth_end(watch), 0);
    TEST_STRING(berth_err, "");
    TEST_STRING(names_of_lines(), "granted started exited released");
    line = line_of(2);
    AT_INT(line, "schema", 1);
    AT_STRING(line, "host", "ant");
    AT_STRING(line, "job", "007");
    AT_STRING(line, "message", "007 failed with exit status 1");
    AT_STRING(line, "result", "failure");
    AT_INT(line, "exit_code", 1);
    AT_INT(line, "pools.db", 2);
    AT_INT(line, "pools.net", 1);
    TEST_INT(strlen(json_string_value(berth_at(line, "run"))), 32);
    CU_ASSERT(berth_number_at(line, "token") > 0 && berth_number_at(line, "run_ms") >= 0);
    CU_ASSERT(json_string_value(berth_at(line, "time"))[26] == 'Z');
    TEST_STRING(strchr(json_string_value(berth_at(line, "at")), ':'), ":4"); /* "ready" is 1 */
    AT_INT(line, "seq", 4);
    json_decref(line);
}

static void test_text(void) {
    struct host *ant = ant_up();
    struct child *watch = watch_start(ant, "");
    char run[9];

    TEST_INT(berth(ant, "run --name pg-dump -p db:2 -p net -- false"), 1);
    TEST_INT(berth(ant, "limit net 3"), 0);
    await_text(watch, "limit-changed ");
    watch_end(watch);
    snprintf(run, sizeof(run), "%.8s", event_get(host_await(ant, "granted", " "), "run"));
    TEST_INT(berth_out[2] == ':' && berth_out[5] == ':' && berth_out[8] == '.' && berth_out[12] == ' ', 1);
    TEST_INT(strncmp(berth_out + 13, "granted       pg-dump ", 22), 0);
    TEST_INT(strncmp(berth_out + 35, run, 8), 0);
    TEST_INT(strncmp(berth_out + 43, " db:2,net:1 after ", 18), 0);
    CU_ASSERT(strstr(berth_out, " db:2,net:1 failure (exit 1) after ") != NULL);
    CU_ASSERT(strstr(berth_out, " limit-changed the limit of pool net ") != NULL);
}

static void test_filters(void) {
    struct host *ant = ant_up();
    struct child *names = berth_start(ant, "watch --json --events granted,exited --events ready"), *pool,
                 *job;

    await_readers(ant, 1);
    pool = berth_start(ant, "watch --json --pool 'tenant/*' --pool nothing");
    await_readers(ant, 2);
    job = berth_start(ant, "watch --json --job a --job b --pool db -n 8");
    await_readers(ant, 3);
    TEST_INT(berth(ant, "run --name a -p tenant/acme -- true"), 0);
    TEST_INT(berth(ant, "run --name a -p db -- true"), 0);
    TEST_INT(berth(ant, "run --name other -p db -- true"), 0);
    TEST_INT(berth(ant, "limit 'tenant/*' 2"), 0);
    TEST_INT(berth(ant, "run --name b -p db -- true"), 0);
    TEST_INT(berth_end(job), 0);
    TEST_STRING(names_of_lines(), "granted started exited released granted started exited released");
    await_text(pool, "limit-changed");
    watch_end(pool);
    TEST_STRING(names_of_lines(), "granted started exited released operated limit-changed");
    await_lines(names, 8);
    watch_end(names);
    TEST_STRING(names_of_lines(), "granted exited granted exited granted exited granted exited");
}

static void test_refused(void) {
    struct host *ant = ant_up();

    TEST_INT(berth(ant, "watch --events granted,nope"), 64);
    TEST_STRING(berth_err, "berth: there is no event \"nope\"; berth-events(7) lists them\n");
    TEST_INT(berth(ant, "watch --since 12345678"), 64);
    TEST_STRING(berth_err, "berth: since must be the place of an event, such as 1f2e3d4c:17\n");
    TEST_INT(berth(ant, "watch --since 12345678:x"), 64);
    TEST_INT(berth(ant, "watch --since 1234567g:1"), 64);
    TEST_INT(berth(ant, "watch -n 0"), 64);
    TEST_INT(berth(ant, "watch --pool .x"), 64);
    TEST_INT(berth(ant, "watch --job .x"), 64);
    TEST_INT(berth(ant, "watch --timeout 0s"), 64);
    await_readers(ant, 0);
}

static void test_timeout(void) {
    struct host *ant = ant_up();
    struct child *keeper, *watch;
    json_t *line;

    TEST_INT(berth(ant, "watch --timeout 50ms"), 75);
    TEST_STRING(berth_out, "");
    TEST_STRING(berth_err, "");
    keeper = watch_start(ant, ""); /* berthd keeps events only while a client watches */
    watch = berth_start(ant, "watch --json -n 1");
    await_readers(ant, 2);
    TEST_INT(berth(ant, "drain"), 0);
    TEST_INT(berth_end(watch), 0);
    line = line_of(0);
    TEST_INT(berth(ant, "watch --events drained --timeout 2s --since %.8s:0", json_string_value(berth_at(line, "at"))), 0);
    CU_ASSERT(strstr(berth_out, " drained ") != NULL);
    json_decref(line);
    watch_end(keeper);
    TEST_INT(berth(ant, "undrain"), 0);
    await_readers(ant, 0);
}

/* --- where it begins --- */

/* Drains and undrains: two events for each pair. */
static void emit(struct host *h, unsigned pairs) {
    while (pairs-- > 0) {
        TEST_INT(berth(h, "drain"), 0);
        TEST_INT(berth(h, "undrain"), 0);
    }
}

static void test_since(void) {
    struct host *ant = ant_up();
    struct child *watch;
    char at[64], name[9];
    json_t *line;

    watch = watch_start(ant, "--json -n 2");
    emit(ant, 3);
    TEST_INT(berth_end(watch), 0);
    line = line_of(1);
    snprintf(at, sizeof(at), "%s", json_string_value(berth_at(line, "at")));
    json_decref(line);
    snprintf(name, sizeof(name), "%.8s", at);
    TEST_STRING(at + 8, ":3");
    TEST_INT(berth(ant, "watch --json -n 4 --since %s", at), 0);
    TEST_STRING(names_of_lines(), "drained undrained drained undrained");
    line = line_of(0);
    AT_INT(line, "seq", 4);
    json_decref(line);
    TEST_INT(berth(ant, "watch --json -n 1 --since %s:0", name), 0); /* berthd keeps events only while a client watches */
    TEST_STRING(names_of_lines(), "gap drained");
    line = line_of(0);
    AT_INT(line, "missed", 1);
    TEST_STRING(json_string_value(berth_at(line, "at")) + 8, ":1");
    json_decref(line);
    watch = berth_start(ant, "watch --since %s:0 --events ready", name);
    await_text(watch, " gap           1 event missed\n");
    watch_end(watch);
    watch = berth_start(ant, "watch --json -n 1 --since %s:7", name); /* the latest */
    await_readers(ant, 1);
    emit(ant, 1);
    TEST_INT(berth_end(watch), 0);
    line = line_of(0);
    AT_INT(line, "seq", 8);
    json_decref(line);
}

static void test_since_other(void) {
    struct host *ant = ant_up();
    struct child *watch = berth_start(ant, "watch --json --since 00000000:1");
    json_t *line;

    await_text(watch, "\n");
    watch_end(watch);
    TEST_STRING(names_of_lines(), "gap");
    line = line_of(0);
    AT_NULL(line, "missed");
    TEST_STRING(json_string_value(berth_at(line, "at")) + 8, ":1");
    json_decref(line);
    watch = berth_start(ant, "watch --since 00000000:1");
    await_text(watch, " gap           another berthd runs now; an unknown number of events is missing\n");
    watch_end(watch);
}

/* --- the end of berthd or of the reader --- */

static void test_restart(void) {
    struct host *ant = ant_up();
    struct child *watch = watch_start(ant, "--json --events drained,undrained -n 4");

    emit(ant, 1);
    await_text(watch, "\"undrained\"");
    host_kill(ant);
    host_mark(ant);
    host_start(ant);
    await_text(watch, "\"reconnected\"");
    await_readers(ant, 1);
    emit(ant, 1);
    TEST_INT(berth_end(watch), 0);
    TEST_STRING(names_of_lines(), "drained undrained reconnected gap drained undrained");
    await_readers(ant, 0);
}

static void test_away(void) {
    struct host *ant = ant_up();
    struct child *watch = watch_start(ant, "--timeout 1s");

    host_stop(ant);
    TEST_INT(berth_end(watch), 75);
    TEST_INT(berth(ant, "watch"), 69);
    TEST_STRING(berth_out, "");
}

/* `berth watch` ends with the reader of its pipe, also when no event comes. */
static void test_pipe(void) {
    struct host *ant = ant_up();
    char command[512];
    char *argv[] = {(char *) "/bin/sh", (char *) "-c", command, NULL};
    struct child *shell;

    (void) snprintf(command, sizeof(command), "%s/berth --socket %s watch | head -n 1", cluster.build,
                    ant->socket);
    shell = child_start(argv, NULL);
    await_readers(ant, 1);
    TEST_INT(berth(ant, "drain"), 0);
    CU_ASSERT(child_await(shell, HOST_PATIENCE));
    CU_ASSERT(strstr(child_text(shell, 1), " drained ") != NULL);
    child_free(shell);
    await_readers(ant, 0);
    TEST_INT(berth(ant, "undrain"), 0);
}

/* --- another user --- */

#define STRANGER 64001

static struct child *watch_as_stranger(struct host *h) {
    char program[300], socket[128];
    char *argv[] = {program, (char *) "watch", (char *) "--since", (char *) "00000000:1", NULL};
    char *environment[] = {socket, NULL};

    (void) snprintf(program, sizeof(program), "%s/berth", cluster.build);
    (void) snprintf(socket, sizeof(socket), "BERTH_SOCKET=%s", h->socket);
    return child_start_as(STRANGER, "", argv, environment);
}

static void test_stranger(void) {
    struct child *watch;
    struct host *ant;
    char expected[256];

    TEST_NEEDS_ROOT();
    ant = ant_up();
    TEST_INT(chmod(ant->socket, 0660), 0);
    TEST_INT(berth_end(watch_as_stranger(ant)), 77);
    TEST_STRING(berth_out, "");
    (void) snprintf(expected, sizeof(expected),
                    "berth: not allowed to use %s (root and the group \"berth\" are; the group \"berth-look\" may look)\n", ant->socket);
    TEST_STRING(berth_err, expected);
    TEST_INT(chmod(ant->socket, 0666), 0); /* everybody who can connect may look */
    watch = watch_as_stranger(ant);
    await_text(watch, " gap ");
    watch_end(watch);
}

static CU_TestInfo tests[] = {
    {"a line of JSON has the fields of the journal", test_json},
    {"a line for people", test_text},
    {"the wanted events, pools and jobs", test_filters},
    {"wrong options", test_refused},
    {"a timeout: the status shows whether an event came", test_timeout},
    {"a stream goes on after an event", test_since},
    {"a place of another berthd", test_since_other},
    {"berthd restarts", test_restart},
    {"berthd stays away", test_away},
    {"the reader of a pipe ends", test_pipe},
    {"another user needs access to the socket only", test_stranger},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "watch", .pSetUpFunc = cluster_up_without_redis, .pTearDownFunc = cluster_down,
             .pTests = tests});

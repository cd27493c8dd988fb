/* SPDX-License-Identifier: MIT */

/* The functions of host.h that run `berth`. */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/process/process-describe.h"
#include "base/process/process-tree.h"
#include "tests/harness/host/host.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define WORDS_MAX 64

char *berth_out, *berth_err;

/* Splits in place; at most WORDS_MAX. */
static void split(char *text, char **argv, size_t n) {
    while (*text && n + 1 < WORDS_MAX) {
        bool quoted;

        text += strspn(text, " ");
        if (!*text)
            break;
        quoted = *text == '\'';
        text += quoted;
        argv[n++] = text;
        text += strcspn(text, quoted ? "'" : " ");
        if (*text)
            *text++ = '\0';
    }
    argv[n] = NULL;
}

static _printf_(2, 0) struct child *start(struct host *h, const char *words, va_list args) {
    _cleanup_free_ char *text = NULL;
    char program[512], socket[128], *argv[WORDS_MAX] = {program};
    char *environment[8] = {NULL};

    if (vasprintf(&text, words, args) < 0)
        abort();
    (void) place_program(program, sizeof(program), "berth");
    split(text, argv, 1);
    if (!h)
        return child_start(argv, NULL);
    snprintf(socket, sizeof(socket), "BERTH_SOCKET=%s", h->socket);
    environment[0] = socket;
    for (size_t i = 0; h->environment && h->environment[i] && i + 2 < ELEMENTSOF(environment); i++)
        environment[i + 1] = h->environment[i];
    return host_spawn(h, argv, environment);
}

struct child *berth_start(struct host *h, const char *words, ...) {
    struct child *c;
    va_list args;

    va_start(args, words);
    c = start(h, words, args);
    va_end(args);
    return c;
}

struct child *berth_at_gate(struct host *h, const char *options, const char *name, const char *event) {
    struct child *c = berth_start(h, "run %s --name %s -- %s --id %s", options, name, cluster.at_gate, name);

    host_await(h, event, "job=%s", name);
    return c;
}

void berth_forget(void) {
    free(berth_out);
    free(berth_err);
    berth_out = berth_err = NULL;
}

/* Writes the command line of the process, cut to the size. */
static void read_words(pid_t pid, char *words, size_t size) {
    char path[40];
    _cleanup_free_ char *text = NULL;
    size_t n = 0;

    (void) snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    if (file_read(path, 4096, &text, &n) < 0)
        n = 0;
    n = n < size ? n : size - 1;
    for (size_t i = 0; i < n; i++)
        words[i] = text[i] ? text[i] : ' ';
    words[n] = '\0';
}

/* Else a test awaits each of its next calls as long. */
static void fail_on(struct child *c) {
    char words[160], state[PROCESS_TEXT_SIZE] = "", below[PROCESS_TEXT_SIZE] = "no process";
    pid_t pid;

    read_words(c->pid, words, sizeof(words));
    process_describe(c->pid, state);
    if (process_tree_list(c->pid, NULL, 0, &pid, 1) > 0)
        process_describe(pid, below);
    TEST_ABORT("does not end: %s, %s; below it is %s; it said: %s", words, state, below, child_text(c, 2));
}

int berth_end(struct child *c) {
    int status;

    if (!c)
        return -1;
    if (!child_await(c, HOST_PATIENCE))
        fail_on(c);
    status = !c->ended ? -1 : c->signal ? 128 + c->signal : c->exit_code;
    berth_forget();
    berth_out = strdup(child_text(c, 1));
    berth_err = strdup(child_text(c, 2));
    child_free(c);
    return status;
}

int berth(struct host *h, const char *words, ...) {
    struct child *c;
    va_list args;

    va_start(args, words);
    c = start(h, words, args);
    va_end(args);
    return berth_end(c);
}

json_t *berth_json(struct host *h, const char *words, ...) {
    _cleanup_free_ char *text = NULL;
    json_error_t error;
    json_t *json;
    va_list args;

    va_start(args, words);
    if (vasprintf(&text, words, args) < 0)
        abort();
    va_end(args);
    TEST_INT(berth(h, "%s --json", text), 0);
    json = json_loads(berth_out, 0, &error);
    TEST_FATAL(json != NULL, "no JSON from berth");
    TEST_INT(json_integer_value(json_object_get(json, "schema")), 1);
    return json;
}

size_t berth_count_runs(struct host *h) {
    struct child *c = berth_start(h, "runs --json");
    json_t *document = NULL;
    size_t n = SIZE_MAX;

    if (child_await(c, HOST_PATIENCE) && c->exit_code == 0)
        document = json_loads(child_text(c, 1), 0, NULL);
    if (document)
        n = json_array_size(json_object_get(document, "runs"));
    json_decref(document);
    child_free(c);
    return n;
}

static json_t *find_item(const json_t *list, const char *key, const char *value) {
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item) {
        const char *text = json_string_value(json_object_get(item, key));

        if (text && strcmp(text, value) == 0)
            return item;
    }
    return NULL;
}

json_t *berth_at(const json_t *json, const char *path) {
    char copy[128], *rest = copy, *key, *value;

    snprintf(copy, sizeof(copy), "%s", path);
    while (json && (key = strsep(&rest, "."))) {
        value = key;
        if (!json_is_array(json))
            json = json_object_get(json, key);
        else if (strsep(&value, "=") && value)
            json = find_item(json, key, value);
        else
            json = json_array_get(json, strtoul(key, NULL, 10));
    }
    return (json_t *) json;
}

long long berth_number_at(const json_t *json, const char *path) {
    const json_t *number = berth_at(json, path);

    return json_is_integer(number) ? json_integer_value(number) : -1;
}

long long host_pool(struct host *h, const char *pool, const char *what) {
    json_t *json = berth_json(h, "pools '%s'", pool);
    char path[256];
    long long value;

    snprintf(path, sizeof(path), "pools.name=%s.%s", pool, what);
    value = berth_number_at(json, path);
    json_decref(json);
    return value;
}

void host_await_pool(struct host *h, const char *pool, const char *what, long long value) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    long long is;

    while ((is = host_pool(h, pool, what)) != value && clock_boottime() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    if (is != value) {
        printf("%s: %s of %s is %lld, not %lld\n", h->name, what, pool, is, value);
        TEST_FATAL(false, "a pool did not become as awaited");
    }
}

void host_await_redis(struct host *h) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    for (bool connected = false; !connected; child_turn(clock_boottime() + 5 * USEC_PER_MSEC)) {
        json_t *json = berth_json(h, "pools");
        const char *state = json_string_value(berth_at(json, "redis.state"));

        connected = state && strcmp(state, "connected") == 0;
        json_decref(json);
        TEST_FATAL(connected || clock_boottime() < until, "a host has no session");
    }
}

/* --- gates --- */

void test_gate_make(struct test_gate *g, const char *name) {
    snprintf(g->path, sizeof(g->path), "%s/%s", cluster.folder, name);
    g->fd = -1;
    TEST_FATAL(mkfifo(g->path, 0666) == 0 && chmod(g->path, 0666) == 0, "no gate");
    g->fd = open(g->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    TEST_FATAL(g->fd >= 0, "no gate");
}

/* Never read, so that all who poll see it, now and later. */
void test_gate_open(struct test_gate *g) {
    CU_ASSERT_EQUAL(write(g->fd, "x", 1), 1);
}

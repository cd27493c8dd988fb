/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/host.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/host/net.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"
#include "tests/harness/redis/tls.h"

/* --- configs --- */

static void write_config(struct host *h, const char *text) {
    _cleanup_fclose_ FILE *f = fopen(h->config, "we");

    if (!f)
        abort();
    fprintf(f,
            "host = \"%s\"\nnamespace = \"%s\"\nlease = \"%s\"\nheartbeat = \"%s\"\nruntime-directory = \"%s\"\n",
            h->called ? h->called : h->name, h->namespace ? h->namespace : "test", cluster.lease, cluster.heartbeat, h->runtime);
    if (h->has_redis && h->url)
        fprintf(f, "redis {\n    url = \"%s\"\n    %s\n}\n", h->url, h->redis_options ? h->redis_options : "");
    else if (h->has_redis && !h->redis && cluster.redis.tls_port > 0)
        fprintf(f, "redis {\n    url = \"rediss://127.0.0.1:%u\"\n    tls-ca = \"%s\"\n}\n", cluster.redis.tls_port,
                tls_place_path(tls_shared_place(), "ca.crt"));
    else if (h->has_redis)
        fprintf(f, "redis {\n    url = \"unix://%s\"\n}\n", h->redis ? h->redis : cluster.redis.socket);
    fputs(text, f);
    (void) fchmod(fileno(f), 0644);
}

static _printf_(3, 0) struct host *add(const char *name, bool has_redis, const char *config, va_list args) {
    struct host *h = calloc(1, sizeof(*h));
    _cleanup_free_ char *text = NULL;

    if (!h || cluster.n_hosts == ELEMENTSOF(cluster.hosts))
        abort();
    cluster.hosts[cluster.n_hosts++] = h;
    h->has_redis = has_redis;
    snprintf(h->name, sizeof(h->name), "%s", name);
    snprintf(h->config, sizeof(h->config), "%s/%s.conf", cluster.folder, name);
    snprintf(h->runtime, sizeof(h->runtime), "%s/%s", cluster.folder, name);
    snprintf(h->socket, sizeof(h->socket), "%s/%s/control.sock", cluster.folder, name);
    if (vasprintf(&text, config, args) < 0)
        abort();
    write_config(h, text);
    return h;
}

struct host *host_add(const char *name, const char *config, ...) {
    va_list args;
    struct host *h;

    va_start(args, config);
    h = add(name, true, config, args);
    va_end(args);
    return h;
}

struct host *host_add_alone(const char *name, const char *config, ...) {
    va_list args;
    struct host *h;

    va_start(args, config);
    h = add(name, false, config, args);
    va_end(args);
    return h;
}

void host_set_config(struct host *h, const char *config, ...) {
    _cleanup_free_ char *text = NULL;
    va_list args;

    va_start(args, config);
    if (vasprintf(&text, config, args) < 0)
        abort();
    va_end(args);
    write_config(h, text);
}

const char *witness_command(const char *words) {
    static char text[1024];
    char copy[512], *rest = copy;
    size_t n;

    snprintf(copy, sizeof(copy), "%s", words);
    n = (size_t) snprintf(text, sizeof(text), "output = \"null\" command = {\"%s/tests/tools/witness\", \"%s\"", cluster.build,
                          cluster.witness);
    for (char *word; (word = strsep(&rest, " "));)
        n += (size_t) snprintf(text + n, sizeof(text) - n, ", \"%s\"", word);
    snprintf(text + n, sizeof(text) - n, "}");
    return text;
}

const char *witness_at_gate(const char *id, int status) {
    char words[256];

    snprintf(words, sizeof(words), "--id %s --exit %d --gate %s", id, status, cluster.gate.path);
    return witness_command(words);
}

/* --- berthd --- */

static void keep_log(struct host *h) {
    const char *said = child_text(h->berthd, 2);
    size_t size = strlen(said);

    h->log.data = realloc(h->log.data, h->log.size + size + 1);
    if (!h->log.data)
        abort();
    memcpy(h->log.data + h->log.size, said, size + 1);
    h->log.size += size;
}

static struct child *spawn(const struct host *h, char *const argv[], char *const environment[], const char *record) {
    char user[32];
    char *as[80] = {(char *) "setpriv", user, (char *) "--clear-groups", (char *) "--pdeathsig", (char *) "TERM"};
    size_t n = 5;

    snprintf(user, sizeof(user), "--reuid=%u", h->uid);
    for (size_t i = 0; argv[i] && n + 1 < ELEMENTSOF(as); i++)
        as[n++] = argv[i];
    return child_start_recorded(h->uid ? as : argv, environment, record);
}

struct child *host_spawn(const struct host *h, char *const argv[], char *const environment[]) {
    return spawn(h, argv, environment, NULL);
}

void host_launch(struct host *h) {
    char activate[512], program[512], record[96];
    char *argv[] = {activate, (char *) h->passed, (char *) h->passed_names, program, (char *) "-c", h->config,
                    (char *) "--with-runner", NULL};

    if (h->berthd) {
        child_turn(0);
        keep_log(h);
        h->berthd = child_free(h->berthd);
    }
    h->abandoned = false;
    (void) place_program(activate, sizeof(activate), "tests/tools/activate");
    (void) place_program(program, sizeof(program), "berthd");
    host_mark(h);
    snprintf(record, sizeof(record), "%s/%s.%u.record", cluster.folder, h->name, h->n_launched++);
    TEST_FATAL(net_enter(h->network) == 0, "no network namespace");
    h->berthd = spawn(h, h->passed ? argv : argv + 3, h->environment, record);
    if (h->network)
        net_leave();
    TEST_FATAL(h->berthd != NULL, "berthd cannot be started");
}

void host_launch_on(struct host *h, int fd) {
    char number[16];

    snprintf(number, sizeof(number), "%d", fd);
    h->passed = number;
    h->passed_names = "control";
    host_launch(h);
    h->passed = NULL;
}

void host_start(struct host *h) {
    host_launch(h);
    host_await(h, "ready", " ");
}

void host_end_grace(struct host *h) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    int status;

    while ((status = berth(h, "grace --end")) == 69 && clock_boottime() < until) /* on a busy machine */
        child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
    TEST_INT(status, 0);
}

void host_open(struct host *h) {
    host_await(h, "redis-connected", " ");
    host_end_grace(h);
}

struct host *host_up(const char *name, const char *config, ...) {
    bool first = cluster.n_hosts == 0;
    va_list args;
    struct host *h;

    va_start(args, config);
    h = add(name, true, config, args);
    va_end(args);
    host_start(h);
    if (first)
        host_open(h);
    else
        host_await_redis(h);
    return h;
}

void host_signal(struct host *h, int signal) {
    child_kill(h->berthd, signal);
}

static void end(struct host *h, int signal) {
    child_kill(h->berthd, signal);
    if (!child_await(h->berthd, HOST_PATIENCE)) {
        printf("%s does not end; it said:\n%s", h->name, host_log(h));
        TEST_FATAL(false, "berthd does not end");
    }
}

void host_stop(struct host *h) {
    if (!h->berthd || h->berthd->ended)
        return;
    end(h, SIGTERM);
    if (h->berthd->exit_code != 0 || h->berthd->signal != 0) {
        printf("%s: ended with status %d, signal %d; it said:\n%s", h->name, h->berthd->exit_code, h->berthd->signal, host_log(h));
        CU_FAIL("berthd ended badly");
    }
}

void host_kill(struct host *h) {
    end(h, SIGKILL);
    h->abandoned = true;
}

/* --- events --- */

static const char *log_from(struct host *h, size_t from) {
    const char *said = h->berthd ? child_text(h->berthd, 2) : "";
    size_t size = strlen(said);

    if (from >= h->log.size)
        return said + (from - h->log.size > size ? size : from - h->log.size);
    return h->log.data + from; /* events of an older berthd: only with a mark from before the restart */
}

void host_mark(struct host *h) {
    child_turn(0);
    h->mark = h->log.size + (h->berthd ? strlen(child_text(h->berthd, 2)) : 0);
}

const char *host_log(struct host *h) {
    child_turn(0);
    return log_from(h, h->mark);
}

static bool is_event(const char *line, const char *event) {
    size_t length = strlen(event);

    return strncmp(line, event, length) == 0 && line[length] == ':';
}

/* The last " key=" is the field, because the message before it might have the same text. */
static const char *find_field(const char *line, const char *key) {
    char search[80];
    const char *found = NULL;

    snprintf(search, sizeof(search), " %s=", key);
    for (const char *at = line; (at = strstr(at, search)); at++)
        found = at + strlen(search);
    return found;
}

const char *event_get(const char *line, const char *key) {
    static char value[4096]; /* a line is no longer */
    const char *from = find_field(line, key);
    size_t n = 0;
    bool quoted;

    value[0] = '\0';
    if (!from)
        return value;
    quoted = *from == '"';
    for (from += quoted; *from && *from != (quoted ? '"' : ' ') && *from != '\n' && n + 1 < sizeof(value); from++) {
        if (quoted && *from == '\\' && from[1])
            from++;
        value[n++] = *from;
    }
    value[n] = '\0';
    return value;
}

uint64_t event_get_u64(const char *line, const char *key) {
    return strtoull(event_get(line, key), NULL, 10);
}

static bool has_fields(const char *line, const char *fields) {
    _cleanup_free_ char *copy = strdup(fields);
    char *rest = copy;

    for (char *word; (word = strsep(&rest, " "));) {
        char *value = strchr(word, '=');

        if (!value)
            continue;
        *value++ = '\0';
        if (strcmp(event_get(line, word), value) != 0)
            return false;
    }
    return true;
}

/* Finds the first such line from *at on, copies it to h->event, and moves *at behind it. */
static bool find_event(struct host *h, const char **at, const char *event, const char *fields) {
    const char *line_end;

    for (; (line_end = strchr(*at, '\n')); *at = line_end + 1) {
        size_t size = (size_t) (line_end - *at);

        if (!is_event(*at, event) || size >= sizeof(h->event))
            continue;
        memcpy(h->event, *at, size);
        h->event[size] = '\0';
        if (!has_fields(h->event, fields))
            continue;
        *at = line_end + 1;
        return true;
    }
    return false;
}

static _printf_(4, 0) const char *await(struct host *h, usec_t within, const char *event, const char *fields, va_list args) {
    char text[1024];
    struct patience p = patience_of(within);

    vsnprintf(text, sizeof(text), fields, args);
    do {
        const char *at = log_from(h, h->mark);

        if (find_event(h, &at, event, text))
            return h->event;
    } while (h->berthd && !h->berthd->ended && patience_turn(&p));
    printf("%s said:\n%s\n", h->name, log_from(h, h->mark));
    TEST_ABORT("no event of %s: %s %s", h->name, event, text);
    return "";
}

const char *host_await(struct host *h, const char *event, const char *fields, ...) {
    const char *line;
    va_list args;

    va_start(args, fields);
    line = await(h, HOST_PATIENCE, event, fields, args);
    va_end(args);
    return line;
}

const char *host_await_within(struct host *h, usec_t within, const char *event, const char *fields, ...) {
    const char *line;
    va_list args;

    va_start(args, fields);
    line = await(h, within, event, fields, args);
    va_end(args);
    return line;
}

unsigned host_count(struct host *h, const char *event, const char *fields, ...) {
    char text[1024];
    const char *at = host_log(h);
    unsigned n = 0;
    va_list args;

    va_start(args, fields);
    vsnprintf(text, sizeof(text), fields, args);
    va_end(args);
    while (find_event(h, &at, event, text))
        n++;
    return n;
}

void host_await_count(struct host *h, unsigned n, const char *event, const char *fields) {
    struct patience p = patience_of(HOST_PATIENCE);
    unsigned before = 0, count;

    while ((count = host_count(h, event, "%s", fields)) < n && patience_turn(&p)) {
        if (count > before)
            p = patience_of(HOST_PATIENCE);
        before = count;
    }
    if (count < n)
        TEST_ABORT("%u events of %s instead of %u: %s %s", count, h->name, n, event, fields);
}

void host_each(struct host *h, const char *event, void (*fn)(const char *line, void *userdata), void *userdata) {
    const char *at = host_log(h);

    while (find_event(h, &at, event, ""))
        fn(h->event, userdata);
}

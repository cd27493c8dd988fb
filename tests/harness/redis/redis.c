/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/redis.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/harness/host/net.h"
#include "tests/harness/port.h"
#include "tests/harness/redis/tls.h"

#define ARGUMENTS_MAX 160
#define ACL_FILE "packaging/redis.acl"
#define ACL_SIZE (16 * 1024)
#define ADMIN "tester" /* our user where berth has few rights */

/* BERTH_TEST_ACL: a client without a name has the rights of packaging/redis.acl, and no others. "text": with EVAL instead of
 * SCRIPT. */
static size_t limit_rights(const char **arguments, size_t n) {
    static const char *const all[] = {"--user",  ADMIN,   "on",          "nopass", "~*",     "&*", "+@all", "--masteruser", ADMIN,
                                      "--masterauth", "x", "--user", "default", "on", "nopass"};
    static char *text;
    size_t size;
    char *line, *rest, *word;

    if (file_read(ACL_FILE, ACL_SIZE, &text, &size) < 0)
        _exit(126);
    for (size_t i = 0; i < ELEMENTSOF(all); i++)
        arguments[n++] = all[i];
    line = strstr(text, "\nuser berth on ");
    for (rest = line ? line + strlen("\nuser berth on ") : NULL; (word = strsep(&rest, " \n")) && n + 1 < ARGUMENTS_MAX;)
        if (*word)
            arguments[n++] = word;
    if (strcmp(getenv("BERTH_TEST_ACL"), "text") == 0 && n + 2 < ARGUMENTS_MAX) {
        arguments[n++] = "-script";
        arguments[n++] = "+eval";
    }
    return line && n + 1 < ARGUMENTS_MAX ? n : (_exit(126), 0);
}

static size_t add_tls(const struct redis_server *s, const char **arguments, size_t n) {
    const struct tls_place *place = tls_shared_place();
    static char port[8];
    const char *const words[] = {"--tls-port", port, "--tls-auth-clients", "no", "--tls-cert-file", tls_place_path(place, "server.crt"),
                                 "--tls-key-file", tls_place_path(place, "server.key"),
                                 "--tls-ca-cert-file", tls_place_path(place, "ca.crt")};

    (void) snprintf(port, sizeof(port), "%u", s->tls_port);
    for (size_t i = 0; i < ELEMENTSOF(words) && n + 1 < ARGUMENTS_MAX; i++)
        arguments[n++] = words[i];
    return n;
}

static bool has_word(const char *const *words, const char *word) {
    for (; words && *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

static size_t add_cluster(const struct redis_server *s, const char **arguments, size_t n) {
    static char port[8];
    const char *const words[] = {"--cluster-enabled", "yes", "--cluster-port", port};

    (void) snprintf(port, sizeof(port), "%u", s->bus_port);
    for (size_t i = 0; i < ELEMENTSOF(words) && n + 1 < ARGUMENTS_MAX; i++)
        arguments[n++] = words[i];
    return n;
}

static void run(struct redis_server *s, const char *const *extra, pid_t parent) {
    const char *binary = getenv("BERTH_REDIS_SERVER");
    const char *arguments[ARGUMENTS_MAX] = {
        binary ? binary : "redis-server", "--port", "0", "--unixsocket", s->socket, "--dir", s->directory, "--save", "",
        "--appendonly", "no", "--daemonize", "no", "--logfile", "redis.log", "--enable-debug-command", "local",
    };
    size_t n = 0;

    while (arguments[n])
        n++;
    if (extra && *extra && **extra == '/') {
        memmove(&arguments[2], &arguments[1], n++ * sizeof(*arguments));
        arguments[1] = *extra++;
    }
    for (; extra && *extra && n + 1 < ARGUMENTS_MAX; extra++)
        arguments[n++] = *extra;
    if (s->tls_port > 0)
        n = add_tls(s, arguments, n);
    if (s->bus_port > 0)
        n = add_cluster(s, arguments, n);
    if (getenv("BERTH_TEST_ACL"))
        n = limit_rights(arguments, n);
    arguments[n] = NULL;
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    if (net_enter(getenv("REDIS_NETWORK")) < 0)
        _exit(127);
    if (getenv("REDIS_PRELOAD")) /* a library that is for the server alone */
        (void) setenv("LD_PRELOAD", getenv("REDIS_PRELOAD"), 1);
    execvp(arguments[0], (char *const *) arguments);
    if (!binary) { /* redis-tools has the server under another name; argv[0] decides which program it is */
        execvp("redis-check-rdb", (char *const *) arguments);
        execvp("valkey-server", (char *const *) arguments);
    }
    _exit(127);
}

static void disconnect(struct redis_server *s) {
    if (s->client)
        redisFree(s->client);
    s->client = NULL;
}

/* Returns whether a cluster of one node serves all slots. It gets them at its first start. After each start it waits
 * for 2 s. */
static bool has_slots(struct redis_server *s) {
    _cleanup_reply_ redisReply *info = redis_command(s, "CLUSTER INFO");

    if (!info || info->type != REDIS_REPLY_STRING)
        return false;
    if (strstr(info->str, "cluster_slots_assigned:0\r"))
        redis_reply_freep(&(redisReply *) {redis_command(s, "CLUSTER ADDSLOTSRANGE 0 16383")});
    return strstr(info->str, "cluster_state:ok") != NULL;
}

/* Waits until the server answers PING, a little after the socket exists, and has its slots. */
static int await(struct redis_server *s) {
    usec_t deadline = clock_monotonic() + 10 * USEC_PER_SEC; /* the other clock may be the test's */

    while (clock_monotonic() < deadline) {
        _cleanup_reply_ redisReply *reply = redis_command(s, "PING");

        if (reply && reply->type == REDIS_REPLY_STATUS && (s->bus_port == 0 || has_slots(s)))
            return 0;
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            s->pid = 0;
            return -ECHILD;
        }
        (void) poll(NULL, 0, 2);
    }
    return -ETIMEDOUT;
}

static const char *const *kept_extra(struct redis_server *s, const char *const *extra, bool set) {
    static struct {
        const struct redis_server *server;
        const char *words[ARGUMENTS_MAX];
    } kept[16];

    for (size_t i = 0; i < ELEMENTSOF(kept); i++) {
        if (kept[i].server && kept[i].server != s)
            continue;
        if (set) {
            kept[i].server = s;
            memset(kept[i].words, 0, sizeof(kept[i].words));
            for (size_t w = 0; extra && extra[w] && w + 1 < ARGUMENTS_MAX; w++)
                kept[i].words[w] = extra[w];
        }
        return kept[i].words;
    }
    return NULL;
}

int redis_server_resume(struct redis_server *s) {
    const char *const *extra = kept_extra(s, NULL, false);
    pid_t parent = getpid(), pid;

    (void) unlink(s->socket);
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        run(s, extra, parent);
    s->pid = pid;
    return await(s);
}

int redis_server_start(struct redis_server *s, const char *const *extra) {
    *s = (struct redis_server) {.directory = "/tmp/berth-redis-XXXXXX"};
    if (!mkdtemp(s->directory)) {
        s->directory[0] = '\0';
        return -errno;
    }
    (void) snprintf(s->socket, sizeof(s->socket), "%s/redis.sock", s->directory);
    (void) kept_extra(s, extra, true);
    if (getenv("BERTH_TEST_TLS") && !has_word(extra, "--tls-port")) {
        (void) tls_shared_place(); /* made by this process, not by the server's */
        s->tls_port = port_reserve();
    }
    if (getenv("BERTH_TEST_CLUSTER") && !has_word(extra, "--cluster-enabled") && !has_word(extra, "--replicaof"))
        s->bus_port = port_reserve();
    return redis_server_resume(s);
}

void redis_server_kill(struct redis_server *s) {
    disconnect(s);
    if (s->pid > 0) {
        (void) kill(s->pid, SIGKILL);
        (void) kill(s->pid, SIGCONT);
        (void) waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

static bool says(struct redis_server *s, const char *part) {
    _cleanup_reply_ redisReply *reply = redis_command(s, "INFO persistence");

    return reply && reply->type == REDIS_REPLY_STRING && strstr(reply->str, part);
}

/* A folder has the file's name, because root ignores permissions. */
int redis_server_break_snapshots(struct redis_server *s, bool broken) {
    usec_t deadline = clock_monotonic() + 10 * USEC_PER_SEC;
    char dump[sizeof(s->directory) + 16];

    (void) snprintf(dump, sizeof(dump), "%s/dump.rdb", s->directory);
    (void) remove(dump);
    if (broken && mkdir(dump, 0700) < 0)
        return -errno;
    while (!says(s, broken ? "rdb_last_bgsave_status:err" : "rdb_last_bgsave_status:ok") && clock_monotonic() < deadline) {
        _cleanup_reply_ _unused_ redisReply *reply = says(s, "rdb_bgsave_in_progress:0") ? redis_command(s, "BGSAVE") : NULL;

        (void) poll(NULL, 0, 5);
    }
    return says(s, broken ? "rdb_last_bgsave_status:err" : "rdb_last_bgsave_status:ok") ? 0 : -EIO;
}

int redis_server_restart(struct redis_server *s, bool data) {
    if (data) {
        _cleanup_reply_ redisReply *reply = redis_command(s, "SAVE");

        if (!reply || reply->type == REDIS_REPLY_ERROR)
            return -EIO;
    } else {
        char dump[sizeof(s->directory) + 16];

        (void) snprintf(dump, sizeof(dump), "%s/dump.rdb", s->directory);
        (void) unlink(dump);
    }
    redis_server_kill(s);
    return redis_server_resume(s);
}

bool redis_server_is_idle(const struct redis_server *s) {
    char path[64], line[512] = "", *after;
    _cleanup_fclose_ FILE *f = NULL;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) s->pid);
    f = s->pid > 0 ? fopen(path, "re") : NULL;
    if (!f || !fgets(line, sizeof(line), f) || !(after = strrchr(line, ')')))
        return true;
    return strchr("STtZX", after[2]) != NULL;
}

void redis_server_done(struct redis_server *s) {
    static const char *const files[] = {"redis.sock", "redis.log", "dump.rdb", "password", "nodes.conf"};

    redis_server_kill(s);
    if (s->directory[0] == '\0')
        return;
    for (size_t i = 0; i < ELEMENTSOF(files); i++) {
        char path[sizeof(s->directory) + 16];

        (void) snprintf(path, sizeof(path), "%s/%s", s->directory, files[i]);
        (void) unlink(path);
    }
    (void) rmdir(s->directory);
    s->directory[0] = '\0';
}

/* Whether the server has closed the connection, as it does when its role changes: a write would end this process. */
static bool is_closed(const redisContext *client) {
    return client->err || poll(&(struct pollfd) {.fd = client->fd, .events = POLLIN}, 1, 0) > 0;
}

static redisReply *command(struct redis_server *s, const char *format, va_list ap) {
    bool is_new;
    redisReply *reply;

    if (s->client && is_closed(s->client))
        disconnect(s);
    is_new = !s->client;
    if (!s->client)
        s->client = redisConnectUnixWithTimeout(s->socket, (struct timeval) {.tv_sec = 5});
    if (!s->client || s->client->err)
        return NULL;
    (void) redisSetTimeout(s->client, (struct timeval) {.tv_sec = 10});
    if (is_new && getenv("BERTH_TEST_ACL"))
        freeReplyObject(redisCommand(s->client, "AUTH " ADMIN " x"));
    reply = redisvCommand(s->client, format, ap);
    return reply;
}

redisReply *redis_command(struct redis_server *s, const char *format, ...) {
    redisReply *reply;
    va_list ap;

    va_start(ap, format);
    reply = command(s, format, ap);
    va_end(ap);
    return reply;
}

long long redis_number(struct redis_server *s, const char *format, ...) {
    _cleanup_reply_ redisReply *reply = NULL;
    va_list ap;

    va_start(ap, format);
    reply = command(s, format, ap);
    va_end(ap);
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        return reply->integer;
    if (reply && reply->type == REDIS_REPLY_STRING) {
        char *end;
        long long value = strtoll(reply->str, &end, 10);

        return end != reply->str && *end == '\0' ? value : -1;
    }
    return -1;
}

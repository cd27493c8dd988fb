/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/callers.h"

#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/socket.h"

static struct {
    uid_t uid;
    const char *groups[2];
    char numbers[32]; /* groups as setpriv(1) takes them */
} callers[N_WHO] = {
    [OTHER] = {.uid = 64001},
    [RUNNER] = {.uid = 64002, .groups = {RUNNERS}},
    [OPERATOR] = {.uid = 64003, .groups = {OPERATORS}},
    [JOB_OPERATOR] = {.uid = 64004, .groups = {DBA}},
    [POOL_USER] = {.uid = 64005, .groups = {RUNNERS, USERS}},
    [ROOT] = {.uid = 0},
};

struct host *callers_host;
bool callers_exist;

void callers_up(void) {
    callers_exist = geteuid() == 0;
    for (size_t who = 0; who < N_WHO; who++) {
        callers[who].numbers[0] = '\0';
        for (size_t i = 0; i < 2 && callers[who].groups[i]; i++) {
            const struct group *g = getgrnam(callers[who].groups[i]);
            size_t n = strlen(callers[who].numbers);

            callers_exist &= g != NULL;
            if (g)
                snprintf(callers[who].numbers + n, sizeof(callers[who].numbers) - n, "%s%u", i > 0 ? "," : "", (unsigned) g->gr_gid);
        }
    }
    cluster_up_without_redis();
    callers_host = host_add_alone("ant", TOP POOLS JOBS);
    host_start(callers_host);
    TEST_INT(chmod(callers_host->socket, 0666), 0);
}

int caller_connect(enum who who, const char *path) {
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

const char *caller_call(int fd, const char *method, const char *params, bool more) {
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

bool caller_may(enum who who, const char *method, const char *params) {
    int fd = caller_connect(who, callers_host->socket);
    bool is_refused = strstr(caller_call(fd, method, params, strcmp(method, "Hold") == 0), "\"io.berth.NotAllowed\"") != NULL;

    close(fd);
    return !is_refused;
}

struct child *caller_start(enum who who, const char *words) {
    char program[300], socket[128], copy[256], *rest = copy, *argv[32] = {program};
    char *environment[] = {socket, NULL};
    size_t n = 1;

    snprintf(program, sizeof(program), "%s/berth", cluster.build);
    snprintf(socket, sizeof(socket), "BERTH_SOCKET=%s", callers_host->socket);
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *word; n + 1 < ELEMENTSOF(argv) && (word = strsep(&rest, " "));)
        argv[n++] = word;
    return child_start_as(callers[who].uid, callers[who].numbers, argv, environment);
}

void caller_refused(enum who who, const char *words, const char *expected) {
    TEST_INT(berth_end(caller_start(who, words)), 77);
    TEST_STRING(berth_err, expected);
}

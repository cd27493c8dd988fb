/* SPDX-License-Identifier: MIT */

/* journald does not read while berthd works: runs are as fast as ever, and later journald gets each entry,
 * in order. In a mount namespace with a socket of the test in place of the journal's. Entries lost beyond 4
 * MiB, and their count: tests/unit/base/journal/test-journal.c. */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/file.h"
#include "tests/harness/host/host.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define AT_ONCE 8
/* For so many runs of `true`, which take 50 ms. A run that waits for this journald never ends. */
#define ROUND_MAX (5 * USEC_PER_SEC)

static int journal = -1;
static uint64_t last_seq;
static size_t n_exited;

static bool enter_namespace(void) {
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("run", "/run", "tmpfs", 0, NULL) == 0 && mkdir("/run/systemd", 0755) == 0 &&
           mkdir("/run/systemd/journal", 0755) == 0;
}

static bool listen_as_journal(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};

    journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return journal >= 0 && bind(journal, (struct sockaddr *) &address, sizeof(address)) == 0;
}

/* Returns how many entries such a socket holds. */
static size_t queue_length(void) {
    _cleanup_free_ char *text = NULL;
    size_t size;

    int r = file_read("/proc/sys/net/unix/max_dgram_qlen", 64, &text, &size);

    return r == 0 ? strtoul(text, NULL, 10) : 512;
}

/* As a service manager starts it: standard error is the journal's. */
static struct host *start(void) {
    struct host *h = host_add_alone("ant", "pool \"slot\" { limit = 8 scope = \"host\" }\n");
    char program[512], script[1024];
    char *argv[] = {(char *) "sh", (char *) "-c", script, NULL};
    usec_t until = clock_boottime() + HOST_PATIENCE;

    (void) place_program(program, sizeof(program), "berthd");
    snprintf(script, sizeof(script),
             "JOURNAL_STREAM=$(stat -L -c %%d:%%i /proc/self/fd/2) exec '%s' -c '%s' --with-runner", program,
             h->config);
    h->berthd = host_spawn(h, argv, NULL);
    TEST_FATAL(h->berthd != NULL, "berthd cannot be started");
    while (berth(h, "pools") != 0 && clock_boottime() < until)
        child_turn(clock_boottime() + 10 * USEC_PER_MSEC);
    return h;
}

static void take_entry(const char *entry) {
    const char *seq = strstr(entry, "\nBERTH_SEQ=");
    uint64_t number = seq ? strtoull(seq + strlen("\nBERTH_SEQ="), NULL, 10) : 0;

    if (number > 0) {
        TEST_INT(number, last_seq + 1);
        last_seq = number;
    }
    n_exited += strstr(entry, "\nBERTH_EVENT=exited\n") != NULL;
}

static void read_journal(size_t exits) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    char entry[16384];
    ssize_t n;

    while (n_exited < exits && clock_boottime() < until) {
        while ((n = recv(journal, entry, sizeof(entry) - 1, MSG_DONTWAIT)) > 0) {
            entry[n] = '\0';
            take_entry(entry);
        }
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    }
    TEST_INT(n_exited, exits);
}

static void does_not_read(void) {
    size_t n_rounds = (queue_length() + 400) / (3 * AT_ONCE); /* a run has three entries and more */
    struct child *runs[AT_ONCE];
    struct host *h;

    TEST_NEEDS_ROOT();
    TEST_FATAL(enter_namespace() && listen_as_journal(), "no mount namespace");
    h = start();
    for (size_t i = 0; i < n_rounds; i++) {
        usec_t begun = clock_boottime();

        for (size_t k = 0; k < AT_ONCE; k++)
            runs[k] = berth_start(h, "run -p slot -- true");
        for (size_t k = 0; k < AT_ONCE; k++)
            TEST_FATAL(berth_end(runs[k]) == 0, "a run waits for the journal");
        CU_ASSERT(clock_boottime() - begun < ROUND_MAX);
    }
    read_journal(n_rounds * AT_ONCE);
    CU_ASSERT(last_seq > queue_length());
    host_stop(h);
    TEST_STRING(child_text(h->berthd, 2), "");
    TEST_INT(recv(journal, &(char) {0}, 1, MSG_DONTWAIT | MSG_PEEK), 1); /* what it said at its end */
    journal = close_fd(journal);
}

static CU_TestInfo tests[] = {
    {"does not read for a while", does_not_read},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "journal full", .pSetUpFunc = cluster_up_without_redis, .pTearDownFunc = cluster_down,
             .pTests = tests});

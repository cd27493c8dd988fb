/* SPDX-License-Identifier: MIT */

/* Credentials of a job on a whole host (S31): berthd gets none of them, and they outlive neither their run
 * nor the machine. */

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"
#include "tests/harness/host/host-reboot.h"
#include "tests/harness/test.h"

#define SECRET "s3cret-of-this-host"

static struct host *ant;

static void up(void) {
    char path[96];

    cluster_up_without_redis();
    snprintf(path, sizeof(path), "%s/token", cluster.folder);
    TEST_INT(file_write_atomic(path, SECRET, strlen(SECRET), 0600), 0);
    ant = host_add_alone("ant",
                         HOST_LASTING "pool \"slot\" { limit = 1 scope = \"host\" }\n"
                         "job \"long\" { script = 'read x < $CREDENTIALS_DIRECTORY/token || test -n \"$x\" && exec sleep 1000' "
                         "credentials = {\"token=%s\"} pools = {\"slot\"} stop-timeout = \"200ms\" }\n"
                         "job \"bad\" { command = {\"/bin/true\"} credentials = {\"token=%s\", \"none=/nonexistent\"} }\n",
                         cluster.folder, path, path);
    host_start(ant);
}

struct search {
    char path[256];
    unsigned n_found, n_files;
};

static int look_into(const char *name, void *userdata) {
    struct search *search = userdata, inner = {};
    _cleanup_free_ char *text = NULL;
    struct stat st;
    size_t size;

    snprintf(inner.path, sizeof(inner.path), "%.180s/%.60s", search->path, name);
    if (strcmp(name, "token") == 0 || lstat(inner.path, &st) < 0)
        return 0;
    if (S_ISDIR(st.st_mode)) {
        (void) directory_each(inner.path, look_into, &inner);
    } else if (S_ISREG(st.st_mode) && file_read(inner.path, 64 << 20, &text, &size) == 0) {
        inner.n_files = 1;
        inner.n_found = memmem(text, size, SECRET, strlen(SECRET)) != NULL;
        if (inner.n_found > 0)
            printf("the secret is in %s\n", inner.path);
    }
    search->n_files += inner.n_files;
    search->n_found += inner.n_found;
    return 0;
}

/* Checks that no file of the host has the secret: configs, records, reports, the state directory, records of
 * the witness. The credential and its source are called token. */
static void is_nowhere(void) {
    struct search search = {};

    snprintf(search.path, sizeof(search.path), "%s", cluster.folder);
    (void) directory_each(search.path, look_into, &search);
    CU_ASSERT(search.n_files > 0);
    TEST_INT(search.n_found, 0);
    CU_ASSERT(strstr(host_log(ant), SECRET) == NULL);
}

static int count_one(_unused_ const char *name, void *userdata) {
    ++*(unsigned *) userdata;
    return 0;
}

/* Returns the number of runs with a directory of credentials. */
static unsigned count(void) {
    unsigned n = 0;
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", ant->runtime, PROTOCOL_CREDENTIALS);
    (void) directory_each(path, count_one, &n);
    return n;
}

static void known_to_nobody(void) {
    TEST_INT(berth(ant, "start bad"), 0);
    host_await(ant, "exited", "job=bad result=not-started");
    is_nowhere();
    TEST_INT(berth(ant, "start long"), 0);
    host_await(ant, "started", "job=long");
    TEST_INT(count(), 1);
    is_nowhere();
    TEST_INT(berth(ant, "runs --json"), 0);
    CU_ASSERT(strstr(berth_out, SECRET) == NULL);
    TEST_INT(berth(ant, "stop long"), 0);
    host_await(ant, "released", "job=long");
    TEST_INT(count(), 0);
    is_nowhere();
}

/* The run continues without berthd, and keeps its credentials until it is over. */
static void berthd_killed(void) {
    TEST_INT(berth(ant, "start long"), 0);
    host_await(ant, "started", "job=long");
    host_kill(ant);
    TEST_INT(count(), 1);
    host_start(ant);
    TEST_INT(count(), 1);
    TEST_INT(berth(ant, "stop long"), 0);
    host_await(ant, "released", "job=long");
    TEST_INT(count(), 0);
    is_nowhere();
}

static void rebooted(void) {
    TEST_NEEDS_ROOT(); /* only root can remove the directory as a shutdown does */
    TEST_INT(berth(ant, "start long"), 0);
    host_await(ant, "started", "job=long");
    host_reboot(ant);
    is_nowhere();
    host_start(ant);
    TEST_INT(count(), 0);
    is_nowhere();
}

static CU_TestInfo tests[] = {
    {"known to nobody", known_to_nobody},
    {"berthd killed", berthd_killed},
    {"rebooted", rebooted},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "credentials-host", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});

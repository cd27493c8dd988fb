/* SPDX-License-Identifier: MIT */

/* Set-up and tear-down of a cluster; the functions are in host.h. */

#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/host.h"
#include "tests/harness/test.h"
#include "tests/harness/witness.h"

struct cluster cluster;

void cluster_up_without_redis(void) {
    const char *build = getenv("BERTH_BUILD");

    cluster = (struct cluster) {.folder = "/tmp/berth-XXXXXX"};
    if (!mkdtemp(cluster.folder) || chmod(cluster.folder, 0755) < 0 || !realpath(build && *build ? build : "build", cluster.build))
        abort();
    snprintf(cluster.witness, sizeof(cluster.witness), "%s/witness", cluster.folder);
    snprintf(cluster.command, sizeof(cluster.command), "%s/tests/tools/witness %s", cluster.build, cluster.witness);
    witness_prepare(cluster.witness);
}

void cluster_up(void) {
    cluster_up_without_redis();
    cluster_start_redis();
}

/* --- what is left --- */

static bool is_empty(const char *path, const char *part) {
    char folder[160];
    bool empty = true;
    DIR *list;

    snprintf(folder, sizeof(folder), "%s/%s", path, part);
    list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            printf("left behind: %s/%s\n", folder, entry->d_name);
            empty = false;
        }
    if (list)
        (void) closedir(list);
    return empty;
}

/* Of a berthd that was stopped in order nothing of a run may be there. */
static void check_files(const struct host *h) {
    static const char *const folders[] = {"waiting", "holds", "runner/runs"};

    for (size_t i = 0; i < ELEMENTSOF(folders); i++)
        if (!is_empty(h->runtime, folders[i]))
            CU_FAIL("files were left behind");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void) st;
    (void) type;
    (void) ftw;
    return remove(path);
}

static void check_sanitizers(struct host *h) {
    h->mark = 0;
    if (strstr(host_log(h), "Sanitizer") || strstr(host_log(h), "runtime error:") || (h->log.data && strstr(h->log.data, "Sanitizer"))) {
        printf("%s: %s\n%s\n", h->name, h->log.data ? h->log.data : "", child_text(h->berthd, 2));
        CU_FAIL("a sanitizer found something");
    }
}

void cluster_down(void) {
    bool abandoned = false;

    for (size_t i = 0; i < cluster.n_hosts; i++)
        child_kill(cluster.hosts[i].berthd, SIGCONT); /* a test may have left it stopped */
    for (size_t i = 0; i < cluster.n_hosts; i++) /* at once: they need not wait for one another */
        child_kill(cluster.hosts[i].berthd, SIGTERM);
    for (size_t i = 0; i < cluster.n_hosts; i++) {
        struct host *h = &cluster.hosts[i];

        abandoned = abandoned || h->abandoned;
        if (h->berthd && !h->berthd->ended && !child_await(h->berthd, HOST_PATIENCE)) {
            printf("%s does not end; it said:\n%s", h->name, child_text(h->berthd, 2));
            CU_FAIL("berthd does not end");
        }
        if (h->berthd && !h->abandoned) {
            TEST_INT(h->berthd->exit_code, 0);
            check_files(h);
        }
    }
    if (child_sweep(abandoned ? 2 * CLUSTER_LEASE_USEC : 5 * USEC_PER_SEC) > 0)
        CU_FAIL("processes were left behind");
    for (size_t i = 0; i < cluster.n_hosts; i++) {
        struct host *h = &cluster.hosts[i];

        if (h->berthd)
            check_sanitizers(h);
        h->berthd = child_free(h->berthd);
        free(h->log.data);
    }
    child_free_all();
    cluster.redis = redis_free(cluster.redis);
    free(berth_out);
    free(berth_err);
    berth_out = berth_err = NULL;
    (void) nftw(cluster.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    cluster.n_hosts = 0;
}

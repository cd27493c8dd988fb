/* SPDX-License-Identifier: MIT */

/* berthd has the password of Redis only while it connects: not in its memory afterwards, nor in its
 * arguments or environment. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define CHUNK ((size_t) 1 << 20)
#define OVERLAP 64 /* a word may lie over two chunks */
#define MAPPING_MAX (UINT64_C(1) << 32) /* larger is the shadow memory of a sanitizer */

static size_t count_in(const char *data, size_t size, const char *word) {
    size_t n = 0, length = strlen(word);

    for (const char *at = data, *end = data + size; (at = memmem(at, (size_t) (end - at), word, length)); at++)
        n++;
    return n;
}

/* Returns how often a word is in the writable memory of a process. */
static size_t count_in_memory(pid_t pid, const char *word) {
    _cleanup_free_ char *data = malloc(CHUNK), *line = NULL;
    _cleanup_fclose_ FILE *maps = NULL;
    _cleanup_close_ int memory = -1;
    size_t n = 0, size = 0;
    char path[48];

    (void) snprintf(path, sizeof(path), "/proc/%d/maps", (int) pid);
    maps = fopen(path, "re");
    (void) snprintf(path, sizeof(path), "/proc/%d/mem", (int) pid);
    memory = open(path, O_RDONLY | O_CLOEXEC);
    CU_ASSERT_FATAL(data && maps && memory >= 0);
    while (getline(&line, &size, maps) >= 0) {
        uint64_t from, to;
        char rights[8];

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &from, &to, rights) != 3 || rights[1] != 'w' || to - from > MAPPING_MAX)
            continue;
        for (; from + OVERLAP < to; from += CHUNK - OVERLAP) {
            ssize_t got = pread(memory, data, to - from < CHUNK ? to - from : CHUNK, (off_t) from);

            if (got > 0)
                n += count_in(data, (size_t) got, word);
        }
    }
    return n;
}

static size_t count_in_file(pid_t pid, const char *file, const char *word) {
    _cleanup_free_ char *data = NULL;
    char path[48];
    size_t size;

    (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, file);
    CU_ASSERT_FATAL(file_read(path, 1 << 20, &data, &size) >= 0);
    return count_in(data, size, word);
}

static void tell(const char *command) {
    _cleanup_reply_ redisReply *reply = redis_command(&cluster.redis, command);

    CU_ASSERT(reply && reply->type == REDIS_REPLY_STATUS);
}

static void test_password(void) {
    static const char *const passwords[] = {"hush-4f1c9d27aa01", "hush-77e0b35c2d90"};
    char path[64], options[120], url[120];
    struct host *h;
    pid_t pid;

    (void) snprintf(path, sizeof(path), "%s/password", cluster.folder);
    (void) snprintf(options, sizeof(options), "username = keeper\n    password-file = \"%s\"\n", path);
    tell("ACL SETUSER keeper on ~* &* +@all >hush-4f1c9d27aa01 >hush-77e0b35c2d90");
    CU_ASSERT_FATAL(file_write_atomic(path, passwords[0], strlen(passwords[0]), 0600) == 0);
    h = host_add("ant", " ");
    (void) snprintf(url, sizeof(url), "unix://%s", cluster.redis.socket);
    h->url = url;
    h->redis_options = options;
    host_set_config(h, "pool \"db\" { limit = 2 }\n");
    host_start(h);
    host_open(h);
    pid = h->berthd->pid;
    TEST_INT(count_in_memory(pid, passwords[0] + strlen("hush-")), 0);
    CU_ASSERT_FATAL(file_write_atomic(path, passwords[1], strlen(passwords[1]), 0600) == 0);
    TEST_INT(berth(h, "reload"), 0);
    TEST_INT(berth(h, "run -p db -- true"), 0);
    CU_ASSERT(count_in_memory(pid, "keeper") > 0); /* what is there is found */
    for (size_t i = 0; i < ELEMENTSOF(passwords); i++) {
        TEST_INT(count_in_memory(pid, passwords[i] + strlen("hush-")), 0);
        TEST_INT(count_in_file(pid, "cmdline", passwords[i]) + count_in_file(pid, "environ", passwords[i]), 0);
    }
    (void) unlink(path);
}

/* A user without a password is logged in, too: the default user may have other rights. */
static void test_no_password(void) {
    _cleanup_reply_ redisReply *list = NULL;
    char url[120];
    struct host *h;

    tell("ACL SETUSER keeper on nopass ~* &* +@all");
    h = host_add("ant", " ");
    (void) snprintf(url, sizeof(url), "unix://%s", cluster.redis.socket);
    h->url = url;
    h->redis_options = "username = keeper\n";
    host_set_config(h, "pool \"db\" { limit = 2 }\n");
    host_start(h);
    host_open(h);
    list = redis_command(&cluster.redis, "CLIENT LIST");
    CU_ASSERT(list && list->type == REDIS_REPLY_STRING && strstr(list->str, " user=keeper "));
}

static CU_TestInfo tests[] = {{"password", test_password}, {"user without one", test_no_password}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "redis password", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});

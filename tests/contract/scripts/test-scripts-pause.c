/* SPDX-License-Identifier: MIT */

/* The scripts alone: a pool with many waiting claims is paused and resumed, without delay for another pool's
 * claims (R2, R15). Another process requests permits of the other pool, one claim after the other, while
 * this one pauses, resumes and sends heartbeats. BERTH_TEST_PAUSED=n: the number of waiting claims. */

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/redis/client/script.h"
#include "tests/harness/redis/script.h"
#include "tests/harness/run-delay.h"

#define CALL 32 /* claims in one call */
#define HEARTBEATS 40u /* each is repeated while the reply has `more` */
#define MOST (100 * USEC_PER_MSEC)

/* The results of the neighbour, in shared memory. */
static struct seen {
    volatile bool end;
    volatile unsigned n, n_waited; /* claims; those that were not granted at once */
    volatile usec_t longest;       /* from the call to its reply, without the time in which neither it nor Redis got a processor */
} *seen;

/* --- the neighbour --- */

static redisReply *ask(redisContext *c, const char *script, const char *words) {
    char line[256];
    const char *argv[20];
    int argc = 0;
    char *rest = line, *word;

    snprintf(line, sizeof(line), "EVALSHA %s 2 %s %s s2 1 %s 1 %s", script, META, NONE, script_epoch, words);
    while ((word = strsep(&rest, " ")) && argc < (int) ELEMENTSOF(argv)) {
        for (char *at = word; (at = strchr(at, '_'));)
            *at = ' ';
        argv[argc++] = word;
    }
    return redisCommandArgv(c, argc, argv, NULL);
}

static usec_t now_without_delays(void) {
    return usec_sub(clock_monotonic(), run_delay(getpid()) + run_delay(script_server.pid));
}

static void be_neighbour(void) {
    redisContext *c = redisConnectUnix(script_server.socket);
    char words[64];

    while (c && !seen->end) {
        usec_t before = now_without_delays(), took;
        _cleanup_reply_ redisReply *claim = NULL, *release = NULL;

        snprintf(words, sizeof(words), "n%u 0_7_r_name 0 0 net 1 100", seen->n);
        claim = ask(c, redis_script_sha(REDIS_SCRIPT_CLAIM), words);
        took = usec_sub(now_without_delays(), before);
        if (took > seen->longest)
            seen->longest = took;
        seen->n_waited += !claim || claim->type == REDIS_REPLY_ERROR || !claim->str || !strstr(claim->str, " H ");
        snprintf(words, sizeof(words), "n%u", seen->n++);
        release = ask(c, redis_script_sha(REDIS_SCRIPT_RELEASE), words);
    }
    _exit(0);
}

static pid_t start_neighbour(void) {
    pid_t parent = getpid(), pid;

    *seen = (struct seen) {0};
    pid = fork();
    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            be_neighbour();
        _exit(1);
    }
    CU_ASSERT_FATAL(pid > 0);
    while (seen->n == 0 && waitpid(pid, NULL, WNOHANG) == 0)
        (void) poll(NULL, 0, 1);
    return pid;
}

static struct seen end_neighbour(pid_t pid) {
    int status = -1;

    seen->end = true;
    CU_ASSERT(waitpid(pid, &status, 0) == pid && status == 0);
    return *seen;
}

/* --- pausing --- */

/* Sends heartbeats, each again while its reply has `more`, as hosts do. */
static unsigned beat_on(void) {
    unsigned calls = 0;

    for (unsigned i = 0; i < HEARTBEATS; i++) {
        do {
            (void) script_beat(i % 2 ? "s2" : "s1", 0, 0);
            calls++;
        } while (script_number(2) > 0 && calls < 100000);
        (void) poll(NULL, 0, 1);
    }
    return calls;
}

/* Measures the neighbour while db's limit is changed ("pause 0 0 ~"; NULL: unchanged) and hosts send
 * heartbeats. */
static struct seen look_beside(const char *what, const char *change) {
    static char version[32] = "0";
    static unsigned n;
    pid_t pid = start_neighbour();
    struct seen s;
    unsigned calls;

    if (change) {
        EXPECT(script_sayf("override s1 1 $ db %s id%u %s", version, n++, change), "ok $ ? *");
        snprintf(version, sizeof(version), "%" PRIu64, script_number(3));
    }
    calls = beat_on();
    s = end_neighbour(pid);
    printf("%s: %u heartbeats, %u claims of another pool, %u of them waited, the longest took %.1f ms\n", what, calls, s.n, s.n_waited,
           (double) s.longest / 1000);
    return s;
}

static void crowd(unsigned size) {
    for (unsigned n = 0; n < size;) {
        char line[2048];
        int length = snprintf(line, sizeof(line), "claims s1 1 $ db 1000000");

        for (unsigned k = 0; k < CALL && n < size; k++)
            length += snprintf(line + length, sizeof(line) - (size_t) length, " c%u 0_7_r_name", n++);
        EXPECT(script_say(line), "ok *");
    }
    CU_ASSERT(redis_number(&script_server, "ZCARD berth:{t}:pool:db:queue") >= size - 4);
}

static void test_long_queue(void) {
    uint64_t size = test_count("BERTH_TEST_PAUSED", 10000);
    struct seen quiet, paused, resumed;

    script_begin();
    crowd((unsigned) size);
    printf("%" PRIu64 " claims wait\n", size);
    quiet = look_beside("before", NULL);
    paused = look_beside("pause", "pause 0 0 ~");
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:pool:db:queue"), (long long) size - 4);
    resumed = look_beside("resume", "resume 0 0 ~");
    TEST_INT(quiet.n_waited + paused.n_waited + resumed.n_waited, 0);
    CU_ASSERT(paused.longest < MOST);
    CU_ASSERT(resumed.longest < MOST);
    TEST_INT(script_used("db"), 4);
    script_end();
}

static CU_TestInfo tests[] = {{"long queue", test_long_queue}, CU_TEST_INFO_NULL};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "scripts, pause", .pTests = tests}, CU_SUITE_INFO_NULL};

    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return seen == MAP_FAILED ? 1 : script_main(argc, argv, suites);
}

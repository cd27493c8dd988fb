/* SPDX-License-Identifier: MIT */

/* Descriptors that clients of a control server pass: one, with its call, until that has returned; nothing stays open, whatever is sent. */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/socket.h"
#include "tests/harness/control-server.h"
#include "tests/harness/test.h"

#define NOBODY 65534
#define TAKE "{\"method\":\"io.test.Take\"}"
#define KEEP "{\"method\":\"io.test.Keep\"}"
#define NONE "{\"parameters\":{\"inode\":0}}"
#define REFUSED(why) "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"" why "\"}}"
#define AT_MOST_ONE REFUSED("one descriptor at most comes along with a call")

static int passed; /* the read end of a pipe */
static unsigned before;

static unsigned count_fds(void) {
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(d))
        n++;
    (void) closedir(d);
    return n;
}

static void up(const struct control_limits *limits) {
    int fds[2];

    server_up(limits); /* what the loop itself opens when it is first used */
    server_turn();
    server_down();
    before = count_fds();
    TEST_INT(pipe2(fds, O_CLOEXEC), 0);
    (void) close(fds[1]);
    passed = fds[0];
    server_up(limits);
}

/* And nothing that was passed is open any more. */
static void down(void) {
    server_down();
    (void) close(passed);
    TEST_INT(count_fds(), before);
}

static const char *taken(void) {
    static char text[64];
    struct stat st;

    TEST_INT(fstat(passed, &st), 0);
    snprintf(text, sizeof(text), "{\"parameters\":{\"inode\":%llu}}", (unsigned long long) st.st_ino);
    return text;
}

/* Bytes, with the passed descriptor so often. */
static void put_with(int fd, const void *data, size_t size, size_t n) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(64 * sizeof(int))];
    } control = {0};
    char copy[4096];
    struct iovec iov = {copy, size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    struct cmsghdr *h = CMSG_FIRSTHDR(&message);

    memcpy(copy, data, size);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(n * sizeof(int));
    for (size_t i = 0; i < n; i++)
        memcpy(CMSG_DATA(h) + i * sizeof(int), &passed, sizeof(int));
    TEST_INT(sendmsg(fd, &message, MSG_NOSIGNAL), (ssize_t) size);
}

static void say_with(int fd, const char *text, size_t n) {
    put_with(fd, text, strlen(text) + 1, n);
    server_turn();
}

static void test_one(void) {
    unsigned open;
    int fd;

    up(NULL);
    fd = server_client();
    open = count_fds();
    for (int i = 0; i < 10; i++) {
        say_with(fd, TAKE, 1);
        TEST_STRING(peer_answer(fd), taken());
        TEST_INT(count_fds(), open);
    }
    peer_say(fd, TAKE);
    TEST_STRING(peer_answer(fd), NONE);
    say_with(fd, ECHO, 1); /* a call that takes none */
    TEST_STRING(peer_answer(fd), ECHOED);
    say_with(fd, KEEP, 1); /* nothing stays open as long as a call does */
    TEST_INT(count_fds(), open);
    close(fd);
    server_turn();
    down();
}

/* It belongs to the message whose bytes it came with, however these come in. */
static void test_its_message(void) {
    int fd;

    up(NULL);
    fd = server_client();
    put_with(fd, TAKE, 5, 1); /* with its beginning */
    server_turn();
    peer_put(fd, &TAKE[5], sizeof(TAKE) - 5);
    TEST_STRING(peer_answer(fd), taken());
    peer_put(fd, TAKE, 5);
    put_with(fd, &TAKE[5], sizeof(TAKE) - 5, 1); /* with its end */
    TEST_STRING(peer_answer(fd), taken());
    peer_put(fd, TAKE, sizeof(TAKE));
    put_with(fd, TAKE, sizeof(TAKE), 1); /* all of these are there before one is read */
    peer_put(fd, TAKE, sizeof(TAKE));
    put_with(fd, TAKE, sizeof(TAKE), 1);
    TEST_STRING(peer_answer(fd), NONE);
    TEST_STRING(peer_answer(fd), taken());
    TEST_STRING(peer_answer(fd), NONE);
    TEST_STRING(peer_answer(fd), taken());
    /* Of two messages in one sendmsg(2) the last one. */
    put_with(fd, TAKE "\0" TAKE, 2 * sizeof(TAKE), 1);
    TEST_STRING(peer_answer(fd), NONE);
    TEST_STRING(peer_answer(fd), taken());
    close(fd);
    server_turn();
    down();
}

static void refused(const void *data, size_t size, size_t n, const char *answer) {
    int fd = server_client();
    unsigned open = count_fds();

    put_with(fd, data, size, n);
    server_turn();
    TEST_STRING(peer_answer(fd), answer);
    TEST_STRING(peer_answer(fd), "");
    TEST_INT(count_fds(), open - 1); /* the server's end */
    close(fd);
}

static void test_too_many(void) {
    int fd;

    up(NULL);
    refused(TAKE, sizeof(TAKE), 2, AT_MOST_ONE);
    refused(TAKE, sizeof(TAKE), 3, AT_MOST_ONE);
    refused(TAKE, sizeof(TAKE), 10, AT_MOST_ONE);
    refused(TAKE, sizeof(TAKE), 64, AT_MOST_ONE);
    refused("{}", 3, 1, REFUSED("the call names no method"));
    refused("hello", 6, 1, REFUSED("the message is not valid JSON"));
    /* A second one before the message is there. */
    fd = server_client();
    put_with(fd, TAKE, 5, 1);
    server_turn();
    put_with(fd, &TAKE[5], 5, 1);
    TEST_STRING(peer_answer(fd), AT_MOST_ONE);
    TEST_STRING(peer_answer(fd), "");
    close(fd);
    down();
}

/* Behind a call that may last for days none is kept. */
static void test_behind_another_call(void) {
    int fd;

    up(NULL);
    fd = server_client();
    peer_say(fd, KEEP);
    say_with(fd, TAKE, 1);
    TEST_STRING(peer_answer(fd), "");
    TEST_INT(server.n_gone, 1);
    close(fd);
    down();
}

static void test_never_finished(void) {
    unsigned open;
    int fd;

    up(&server_small);
    fd = server_client();
    open = count_fds();
    put_with(fd, TAKE, 5, 1);
    server_turn();
    TEST_INT(count_fds(), open + 1);
    TEST_STRING(peer_late_answer(fd), REFUSED("the message was not finished in time"));
    TEST_STRING(peer_answer(fd), "");
    TEST_INT(count_fds(), open - 1);
    close(fd);
    fd = server_client();
    put_with(fd, TAKE, 5, 1);
    server_turn();
    close(fd); /* with half of it said */
    server_turn();
    TEST_INT(count_fds(), open - 2);
    down();
}

/* Each takes the place of a client, so that clients cannot have more descriptors than clients may. */
static void test_flood(void) {
    int fds[16];
    unsigned open;

    up(&server_small); /* 16 clients */
    for (size_t i = 0; i < 9; i++)
        fds[i] = server_client();
    open = count_fds();
    for (size_t i = 0; i < 9; i++) {
        put_with(fds[i], TAKE, 5, 1);
        server_turn();
    }
    /* Seven found room; the eighth client was sent away, which made room for the ninth's. */
    TEST_INT(count_fds(), open + 8 - 1);
    TEST_STRING(peer_answer(fds[7]), REFUSED("berthd has too many clients to take a descriptor"));
    fds[9] = server_client();
    TEST_STRING(peer_answer(fds[9]), "{\"error\":\"io.berth.Away\",\"parameters\":{\"text\":\"berthd has too many clients\"}}");
    for (size_t i = 0; i < 9; i++) {
        if (i == 7)
            continue;
        peer_put(fds[i], &TAKE[5], sizeof(TAKE) - 5);
        TEST_STRING(peer_answer(fds[i]), taken());
    }
    for (size_t i = 0; i < 10; i++)
        close(fds[i]);
    server_turn();
    fds[0] = server_client(); /* and all of it was given back */
    say_with(fds[0], TAKE, 1);
    TEST_STRING(peer_answer(fds[0]), taken());
    close(fds[0]);
    server_turn();
    down();
}

static void test_no_descriptors_left(void) {
    struct rlimit limit, none;
    int fd;

    up(NULL);
    fd = server_client();
    TEST_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit) {3, limit.rlim_max};
    TEST_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    put_with(fd, TAKE, sizeof(TAKE), 1);
    server_turn();
    TEST_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    TEST_STRING(peer_answer(fd), ""); /* not answered as if there had been none */
    close(fd);
    down();
}

static void test_who_may_only_look(void) {
    int fd;

    if (geteuid() != 0)
        TEST_SKIP("needs root to become somebody else");
    up(NULL);
    TEST_INT(chmod(server.directory, 0755), 0);
    TEST_INT(chmod(server.path, 0666), 0);
    TEST_INT(seteuid(NOBODY), 0);
    fd = socket_connect(server.path, SOCK_STREAM);
    TEST_INT(seteuid(0), 0);
    CU_ASSERT_FATAL(fd >= 0);
    server_turn();
    say_with(fd, TAKE, 1);
    TEST_STRING(peer_answer(fd), NONE);
    say_with(fd, TAKE, 10);
    TEST_STRING(peer_answer(fd), NONE);
    close(fd);
    server_turn();
    down();
}

static CU_TestInfo tests[] = {
    {"one", test_one},
    {"its message", test_its_message},
    {"too many", test_too_many},
    {"behind another call", test_behind_another_call},
    {"never finished", test_never_finished},
    {"flood", test_flood},
    {"no descriptors left", test_no_descriptors_left},
    {"who may only look", test_who_may_only_look},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "control passed", .pInitFunc = server_make, .pCleanupFunc = server_remove, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}

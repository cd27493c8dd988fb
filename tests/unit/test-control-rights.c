/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=getgrnam */

/* The group that may control, which this machine need not have: its members may, others may not. */

#include <grp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/harness/control-server.h"
#include "tests/harness/test.h"

#define GROUP 4711
#define NOBODY 65534

struct group *__wrap_getgrnam(const char *name);
struct group *__wrap_getgrnam(const char *name) {
    static struct group group = {.gr_gid = GROUP};

    return strcmp(name, "berth") == 0 ? &group : NULL;
}

/* As nobody, in this group besides: whether a privileged method is run. 1: it is, 0: it is refused. */
static int be_member_of(gid_t group) {
    static const char secret[] = "{\"method\":\"io.test.Secret\"}";
    char text[512] = "";
    struct pollfd p = {.events = POLLIN};

    if (setgroups(1, &group) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        return 2;
    p.fd = socket_connect(server.path, SOCK_STREAM);
    if (p.fd < 0 || send(p.fd, secret, sizeof(secret), 0) < 0)
        return 3;
    if (poll(&p, 1, (int) (SERVER_PATIENCE / USEC_PER_MSEC)) <= 0 || recv(p.fd, text, sizeof(text) - 1, 0) <= 0)
        return 4;
    return strcmp(text, "{\"parameters\":{}}") == 0 ? 1 : strstr(text, "\"io.berth.NotAllowed\"") ? 0 : 5;
}

static int member_may(gid_t group) {
    pid_t pid = fork();
    int status = -1;

    if (pid == 0)
        _exit(be_member_of(group));
    while (waitpid(pid, &status, WNOHANG) == 0)
        (void) sd_event_run(server.event, 10 * USEC_PER_MSEC);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_group(void) {
    struct stat st;

    if (geteuid() != 0)
        TEST_SKIP("another user's connection needs root");
    server_up(NULL);
    TEST_INT(stat(server.path, &st), 0);
    TEST_INT(st.st_gid, GROUP);
    TEST_INT(st.st_mode & 07777, 0660);
    TEST_INT(chmod(server.directory, 0755), 0);
    TEST_INT(member_may(GROUP), 1);
    TEST_INT(member_may(GROUP + 1), 3); /* the socket's mode keeps them out */
    TEST_INT(chmod(server.path, 0666), 0);
    TEST_INT(member_may(GROUP), 1);
    TEST_INT(member_may(GROUP + 1), 0);
    server_down();
}

static CU_TestInfo tests[] = {
    {"group", test_group},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "control-group", .pInitFunc = server_make, .pCleanupFunc = server_remove, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}

/* SPDX-License-Identifier: MIT */

/* Rights to call methods of a control server, by the groups of the connection. */

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/harness/host/control-server.h"
#include "tests/harness/test.h"

#define RUNNERS 4711
#define OPERATORS 4712
#define STRANGERS 4713
#define NOBODY 65534

/* Calls a method as nobody with this supplementary group. Returns 1 if the server runs it, 0 if the
 * server refuses it. */
static int call_as_member_of(gid_t group, const char *call) {
    char text[512] = "";
    struct pollfd p = {.events = POLLIN};

    if (setgroups(1, &group) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        return 2;
    p.fd = socket_connect(server.path, SOCK_STREAM);
    if (p.fd < 0 || send(p.fd, call, strlen(call) + 1, 0) < 0)
        return 3;
    if (poll(&p, 1, (int) (SERVER_PATIENCE / USEC_PER_MSEC)) <= 0 || recv(p.fd, text, sizeof(text) - 1, 0) <= 0)
        return 4;
    return strcmp(text, "{\"parameters\":{}}") == 0 ? 1 : strstr(text, "\"io.berth.NotAllowed\"") ? 0 : 5;
}

static int member_may(gid_t group, const char *call) {
    pid_t pid = fork();
    int status = -1;

    if (pid == 0)
        _exit(call_as_member_of(group, call));
    while (waitpid(pid, &status, WNOHANG) == 0)
        (void) sd_event_run(server.event, 10 * USEC_PER_MSEC);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void set_groups(bool are_known) {
    static char runners[] = "runners", operators[] = "operators";

    server.settings.run_group = (struct account) {.name = runners, .is_group = true, .is_known = are_known, .id = RUNNERS};
    server.settings.operate_group = (struct account) {.name = operators, .is_group = true, .is_known = are_known, .id = OPERATORS};
}

#define RUN "{\"method\":\"io.test.Run\"}"
#define SECRET "{\"method\":\"io.test.Secret\"}"

static void test_groups(void) {
    struct stat st;

    TEST_NEEDS_ROOT();
    set_groups(true);
    server_up(NULL);
    TEST_INT(stat(server.path, &st), 0);
    TEST_INT(st.st_gid, RUNNERS);
    TEST_INT(st.st_mode & 07777, 0660);
    TEST_INT(chmod(server.directory, 0755), 0);
    TEST_INT(member_may(RUNNERS, RUN), 1);
    TEST_INT(member_may(STRANGERS, RUN), 3); /* the socket's mode keeps them out */
    TEST_INT(chmod(server.path, 0666), 0);
    TEST_INT(member_may(RUNNERS, RUN), 1);
    TEST_INT(member_may(RUNNERS, SECRET), 0);
    TEST_INT(member_may(OPERATORS, RUN), 1);
    TEST_INT(member_may(OPERATORS, SECRET), 1);
    TEST_INT(member_may(STRANGERS, RUN), 0);
    TEST_INT(member_may(STRANGERS, SECRET), 0);
    set_groups(false); /* after a reload no group gives a right */
    TEST_INT(member_may(RUNNERS, RUN), 0);
    TEST_INT(member_may(OPERATORS, RUN), 0);
    server_down();
}

/* Connects from this process as nobody with this supplementary group. */
static int connect_as(gid_t group) {
    int fd;

    TEST_INT(setgroups(1, &group), 0);
    TEST_INT(setegid(NOBODY), 0);
    TEST_INT(seteuid(NOBODY), 0);
    fd = socket_connect(server.path, SOCK_STREAM);
    TEST_INT(seteuid(0), 0);
    TEST_INT(setegid(0), 0);
    CU_ASSERT_FATAL(fd >= 0);
    server_turn();
    return fd;
}

static void test_room(void) {
    static const struct {
        gid_t group;
        size_t most;
    } steps[] = {{STRANGERS, 12}, {RUNNERS, 14}, {OPERATORS, 16}};
    gid_t before[256];
    int fds[16], n = 0, n_groups = getgroups(ELEMENTSOF(before), before);

    TEST_NEEDS_ROOT();
    CU_ASSERT_FATAL(n_groups >= 0);
    set_groups(true);
    server_up(&server_small);
    TEST_INT(chmod(server.path, 0666), 0);
    TEST_INT(chmod(server.directory, 0755), 0);
    for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
        int fd;

        while ((size_t) n < steps[i].most)
            peer_expect_ok(fds[n++] = connect_as(steps[i].group));
        fd = connect_as(steps[i].group);
        CU_ASSERT_PTR_NOT_NULL(strstr(peer_answer(fd), "\"io.berth.Away\""));
        close(fd);
    }
    while (n > 0)
        close(fds[--n]);
    server_down();
    TEST_INT(setgroups((size_t) n_groups, before), 0);
}

/* control_new() refuses a table with a method that has no right. */
static int never(_unused_ struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    return 0;
}

static const struct settings *get_settings(_unused_ void *userdata) {
    return &server.settings;
}

static void test_no_right(void) {
    static const struct control_method methods[] = {{.name = "io.test.New", .fn = never, .verb = "new"}, {}};
    static const struct control_service service = {methods, "interface io.test\n", get_settings};
    struct control *control = NULL;

    TEST_INT(control_new(&control, server.event, server.path, -1, &service, NULL), -EINVAL);
    CU_ASSERT_PTR_NULL(control);
}

static CU_TestInfo tests[] = {
    {"groups", test_groups},
    {"room", test_room},
    {"no right", test_no_right},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "control-rights", .pInitFunc = server_make, .pCleanupFunc = server_remove,
             .pTests = tests});

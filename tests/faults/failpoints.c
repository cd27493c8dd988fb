/* SPDX-License-Identifier: MIT */

/* The steps of berthd, runner and guard at which they are made to die or hang. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/faults/fault.h"

const struct failpoint failpoints[] = {
    {"claim-answered", NULL},
    {"claim-sending", NULL},
    {"claim-sent", NULL},
    {"command-before-exec", NULL},
    {"done-sending", NULL},
    {"exited-told", NULL},
    {"grant-seen", NULL},
    {"granted-told", NULL},
    {"guard-begun", NULL},
    {"guard-cgroup-made", NULL},
    {"guard-command-forked", NULL},
    {"guard-ending", NULL},
    {"guard-exit-seen", NULL},
    {"guard-pid-written", NULL},
    {"guard-report-writing", "berthd-away-short"},
    {"guard-started-seen", NULL},
    {"hold-ended-seen", NULL},
    {"hold-ended-told", NULL},
    {"hold-fifo-made", NULL},
    {"hold-made", NULL},
    {"hold-over", NULL},
    {"hold-record-written", NULL},
    {"hold-started-seen", NULL},
    {"release-answered", NULL},
    {"release-sending", NULL},
    {"report-seen", NULL},
    {"run-ended", NULL},
    {"runner-guard-ended", NULL},
    {"runner-guard-forked", NULL},
    {"runner-record-made", NULL},
    {"runner-socket-made", NULL},
    {"runner-start-seen", NULL},
    {"start-sending", NULL},
    {"start-sent", NULL},
    {"started-seen", NULL},
    {"started-told", NULL},
    {"waiting-removed", NULL},
    {"waiting-written", NULL},
    {0},
};

static char armed[64];

void failpoint_arm(const struct plan *p) {
    char text[160];
    int fd;

    snprintf(armed, sizeof(armed), "%s/failpoint", cluster.folder);
    fd = open(armed, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        abort();
    (void) close(fd);
    snprintf(text, sizeof(text), "%s %s %s", p->failpoint->name, p->action, armed);
    (void) setenv("FAILPOINT", text, 1);
}

void failpoint_disarm(void) {
    (void) unsetenv("FAILPOINT");
}

bool failpoint_is_over(void) {
    return access(armed, F_OK) < 0;
}

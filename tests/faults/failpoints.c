/* SPDX-License-Identifier: MIT */

/* The steps at which berthd, runner and guard are made to fail. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/faults/fault.h"

const struct failpoint failpoints[] = {
    {"backlog-begun", NULL},
    {"claim-answered", NULL},
    {"claim-sending", NULL},
    {"claim-sent", NULL},
    {"command-before-exec", NULL},
    {"command-over", NULL},
    {"done-sending", NULL},
    {"due-begun", NULL},
    {"due-synced", NULL},
    {"end-noted", NULL},
    {"exited-logged", NULL},
    {"gate-forked", NULL},
    {"gate-opened", NULL},
    {"gate-opening", NULL},
    {"gate-passed", NULL},
    {"grant-seen", NULL},
    {"grant-sending", NULL},
    {"grant-sent", NULL},
    {"granted-logged", NULL},
    {"guard-begun", NULL},
    {"guard-cgroup-made", NULL},
    {"guard-command-forked", NULL},
    {"guard-ending", NULL},
    {"guard-exit-seen", NULL},
    {"guard-grant-noted", NULL},
    {"guard-grant-seen", NULL},
    {"guard-pid-written", NULL},
    {"guard-prepared", NULL},
    {"guard-preparing", NULL},
    {"guard-report-writing", "berthd-away-short"},
    {"guard-started-seen", NULL},
    {"guard-withdrawing", "berthd-away-short"},
    {"hold-ended-seen", NULL},
    {"hold-ended-logged", NULL},
    {"hold-fifo-made", NULL},
    {"hold-made", NULL},
    {"hold-over", NULL},
    {"hold-record-written", NULL},
    {"hold-started-seen", NULL},
    {"hook-noted", NULL},
    {"prepare-sending", NULL},
    {"record-written", NULL},
    {"release-answered", NULL},
    {"release-sending", NULL},
    {"report-seen", NULL},
    {"run-ended", NULL},
    {"retry-beginning", NULL},
    {"retry-begun", NULL},
    {"retry-noted", NULL},
    {"runner-guard-ended", NULL},
    {"runner-guard-forked", NULL},
    {"runner-record-made", NULL},
    {"runner-socket-made", NULL},
    {"runner-start-seen", NULL},
    {"start-sending", NULL},
    {"start-sent", NULL},
    {"started-seen", NULL},
    {"started-logged", NULL},
    {"waiting-removed", NULL},
    {"waiting-written", NULL},
    {0},
};

const struct failpoint_action failpoint_actions[FAILPOINT_ACTIONS] = {
    {"crash", "dies", 3000, false},
    {"hang", "hangs for longer than a lease", 5000, false},
    {"starve", "gets no memory and no child for 1 s", 3000, true},
};

bool failpoint_find(const char *name, const struct failpoint **ret, const struct failpoint_action **ret_action) {
    const char *action = strchr(name, ':');

    *ret = NULL;
    *ret_action = NULL;
    if (!action)
        return false;
    for (const struct failpoint *at = failpoints; at->name; at++)
        if (strncmp(at->name, name, (size_t) (action - name)) == 0 && !at->name[action - name])
            *ret = at;
    for (size_t i = 0; i < FAILPOINT_ACTIONS; i++)
        if (strcmp(failpoint_actions[i].name, action + 1) == 0)
            *ret_action = &failpoint_actions[i];
    return *ret && *ret_action;
}

static char armed[64];

void failpoint_name(const struct plan *p) {
    char text[160];

    snprintf(armed, sizeof(armed), "%s/failpoint", cluster.folder);
    snprintf(text, sizeof(text), "%s %s %s", p->failpoint->name, p->action->name, armed);
    (void) setenv("FAILPOINT", text, 1);
}

void failpoint_forget(void) {
    (void) unsetenv("FAILPOINT");
}

void failpoint_arm(void) {
    int fd = open(armed, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        abort();
    (void) close(fd);
}

bool failpoint_is_over(void) {
    return access(armed, F_OK) < 0;
}

/* SPDX-License-Identifier: MIT */
/* Drops the privileges of berth-runner. Return values alone prove little (CVE-2006-2607), so the child reads
 * its ids back and tries to regain the old ones. */

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runner/exec/exec-internal.h"

/* The C library has these functions; their declarations are in libcap. */
int capset(struct __user_cap_header_struct *header, const struct __user_cap_data_struct *data);
int capget(struct __user_cap_header_struct *header, struct __user_cap_data_struct *data);

static bool has_ids(const struct exec_plan *plan) {
    uid_t uids[3];
    gid_t gids[3];

    if (getresuid(&uids[0], &uids[1], &uids[2]) < 0 || getresgid(&gids[0], &gids[1], &gids[2]) < 0)
        return false;
    for (int i = 0; i < 3; i++)
        if (uids[i] != plan->uid || gids[i] != plan->gid)
            return false;
    return true;
}

/* Returns whether the process has exactly the plan's supplementary groups. Kernel and plan keep them sorted. */
static bool has_groups(const struct exec_plan *plan) {
    _cleanup_free_ gid_t *groups = calloc(plan->n_groups + 1, sizeof(*groups));

    return groups && getgroups((int) plan->n_groups + 1, groups) == (int) plan->n_groups &&
           memcmp(groups, plan->groups, plan->n_groups * sizeof(*groups)) == 0;
}

static bool can_regain(const struct exec_plan *plan) {
    if (plan->uid == 0)
        return false;
    return setuid(0) == 0 || seteuid(0) == 0 || (plan->gid != 0 && (setgid(0) == 0 || setegid(0) == 0)) || setgroups(0, NULL) == 0;
}

/* setresuid() keeps inheritable capabilities, and with some secure bits all of them (capabilities(7)). The
 * unit sets the bounding set. */
int exec_drop_capabilities(struct exec_context *context) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}}, left[_LINUX_CAPABILITY_U32S_3];

    if (context->plan->uid == 0)
        return 0;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 || capset(&header, none) < 0 || capget(&header, left) < 0)
        return -errno;
    return memcmp(left, none, sizeof(none)) == 0 ? 0 : -EPERM;
}

int exec_set_ids(struct exec_context *context) {
    const struct exec_plan *plan = context->plan;

    if (!plan->changes_user)
        return 0;
    if (setgroups(plan->n_groups, plan->groups) < 0 || setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
        setresuid(plan->uid, plan->uid, plan->uid) < 0)
        return -errno;
    return 0;
}

int exec_verify_ids(struct exec_context *context) {
    const struct exec_plan *plan = context->plan;

    return !plan->changes_user || (has_ids(plan) && has_groups(plan) && !can_regain(plan)) ? 0 : -EPERM;
}

int exec_set_no_new_privileges(struct exec_context *context) {
    const struct exec_plan *plan = context->plan;

    if (plan->job->process.no_new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return 0;
}

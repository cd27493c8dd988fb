/* SPDX-License-Identifier: MIT */
/* Looks up the command's user and groups. They are always names, never numbers, so a user "0day" or "0x0" is
 * unknown and not root (CVE-2017-1000082, CVE-2020-13776). */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "runner/exec/exec-internal.h"

#define GROUPS_MAX 65536 /* NGROUPS_MAX of Linux */

static int find_group(const char *name, gid_t *ret) {
    struct group *group;

    errno = 0;
    group = getgrnam(name);
    if (!group)
        return errno == 0 || errno == ENOENT ? ESRCH : errno;
    *ret = group->gr_gid;
    return 0;
}

static int find_user(const char *name, struct passwd **ret) {
    errno = 0;
    *ret = getpwnam(name);
    if (!*ret)
        return errno == 0 || errno == ENOENT ? ESRCH : errno;
    if ((*ret)->pw_uid == (uid_t) -1)
        return EINVAL;
    return (*ret)->pw_uid == 0 && strcmp(name, "root") != 0 ? EACCES : 0; /* nobody becomes root by another name */
}

static int compare_groups(const void *a, const void *b) {
    gid_t x = *(const gid_t *) a, y = *(const gid_t *) b;

    return (x > y) - (x < y);
}

/* Finds the user's supplementary groups, with none of berth-runner's own (CVE-2023-25173). */
static int find_groups(struct exec_plan *plan, const char *user) {
    int n = 64;

    for (;;) {
        gid_t *groups = reallocarray(plan->groups, (size_t) n, sizeof(*groups));
        int room = n;

        if (!groups)
            return ENOMEM;
        plan->groups = groups;
        if (getgrouplist(user, plan->gid, groups, &n) >= 0)
            break;
        if (room >= GROUPS_MAX)
            return E2BIG;
        n = n > room ? n : 2 * room;
    }
    plan->n_groups = (size_t) n;
    qsort(plan->groups, plan->n_groups, sizeof(*plan->groups), compare_groups);
    return 0;
}

/* Returns whether the plan has the ids of this process. Without root it can have no others. */
static bool is_own(const struct exec_plan *plan) {
    return plan->uid == geteuid() && plan->gid == getegid();
}

static int plan_ids(struct exec_plan *plan, struct passwd **ret_user, const char **ret_stage) {
    const struct job_settings *job = plan->job;
    int r = 0;

    *ret_stage = "user";
    plan->uid = geteuid();
    plan->gid = getegid();
    if (job->user[0])
        r = find_user(job->user, ret_user);
    else
        *ret_user = getpwuid(plan->uid);
    if (r > 0)
        return r;
    if (job->user[0]) {
        plan->uid = (*ret_user)->pw_uid;
        plan->gid = (*ret_user)->pw_gid;
    }
    if (job->group[0]) {
        *ret_stage = "group";
        r = find_group(job->group, &plan->gid);
        if (r > 0)
            return r;
    }
    if (!job->user[0] && !job->group[0])
        return 0;
    *ret_stage = "user";
    if (geteuid() != 0)
        return is_own(plan) ? 0 : EPERM;
    plan->changes_user = true;
    return find_groups(plan, *ret_user ? (*ret_user)->pw_name : "root");
}

/* Names the user or group that stands in the config. error: an errno, positive. Returns it, negative. */
static int explain_ids(struct exec_context *context, int error) {
    const char *stage = *context->stage;
    const char *name = strcmp(stage, "group") == 0 ? context->plan->job->group : context->plan->job->user;

    if (error == ESRCH) /* does not mean a process */
        return exec_explain(context, -error, "%s %.100s: there is no such %s", stage, name, stage);
    return exec_explain(context, -error, "%s%s%.100s: %s", stage, name[0] ? " " : "", name, strerror(error));
}

void exec_plan_init(struct exec_plan *plan, const struct job_settings *job, const struct guard_file *record, const char *runs) {
    *plan = (struct exec_plan) {.job = job, .record = record, .runs = runs, .parent = getpid()};
}

int exec_look_up(struct exec_context *context) {
    struct exec_plan *plan = context->plan;
    struct passwd *user = NULL;
    int r;

    r = plan_ids(plan, &user, context->stage);
    if (r > 0)
        return explain_ids(context, r);
    *context->stage = "environment";
    plan->home = strdup(user ? user->pw_dir : "/");
    return plan->home ? exec_init_environment(&plan->environment, user) : -ENOMEM;
}

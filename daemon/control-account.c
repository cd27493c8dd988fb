/* SPDX-License-Identifier: MIT */

/* What each user has of the control server, and who is not heard for a while. */

#include <unistd.h>

#include "daemon/control-internal.h"

#define REFUSED_TIME (60 * USEC_PER_SEC)
#define ACCOUNTS_MAX 1024 /* of users who have no connection, but are refused: more than that many are not remembered */

static bool account_is_needed(const struct control_account *a, usec_t now) {
    return a->n_clients > 0 || a->refused_until > now;
}

static void account_free(struct control *c, struct control_account *a) {
    list_unlink(&a->link);
    c->n_accounts--;
    free(a);
}

struct control_account *account_get(struct control *c, uid_t uid) {
    usec_t now = clock_boottime();
    struct control_account *found = NULL;

    list_foreach_safe(a, &c->accounts, struct control_account, link)
        if (a->uid == uid)
            found = a;
        else if (!account_is_needed(a, now))
            account_free(c, a);
    if (found)
        return found;
    found = calloc(1, sizeof(*found));
    if (!found)
        return NULL;
    found->uid = uid;
    list_append(&c->accounts, &found->link);
    c->n_accounts++;
    return found;
}

void accounts_free(struct control *c) {
    list_foreach_safe(a, &c->accounts, struct control_account, link)
        account_free(c, a);
}

bool account_is_trusted(uid_t uid) {
    return uid == 0 || uid == geteuid();
}

bool account_is_refused(const struct control_account *a) {
    return a->refused_until > clock_boottime();
}

void account_refuse(struct control *c, struct control_account *a, pid_t pid) {
    if (account_is_trusted(a->uid) || account_is_refused(a) || c->n_accounts > ACCOUNTS_MAX + c->n_clients)
        return;
    a->refused_until = usec_add(clock_boottime(), REFUSED_TIME);
    if (c->on_abuse)
        c->on_abuse(a->uid, pid, c->abuse_userdata);
}

/* SPDX-License-Identifier: MIT */

/* Connections and memory of each user, and users that the server refuses for a while. */

#include <stdio.h>
#include <unistd.h>

#include "base/file-limit.h"
#include "daemon/control/control-internal.h"

#define REFUSED_TIME (60 * USEC_PER_SEC)
#define ACCOUNTS_MAX 1024 /* accounts without a connection, kept because their user is refused */

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

/* Returns the number of connections for callers with this right. Half of the descriptors are reserved for
 * runs. Each greater right has an eighth to itself, so that users who may only look cannot keep out those
 * who run, and these cannot keep out operators. A last part is for root and berthd's own user. */
static size_t clients_max(const struct control *c, const struct control_account *a, enum right right, size_t connections) {
    size_t most = connections < file_limit_get() / 2 ? connections : file_limit_get() / 2;

    if (most > c->limits.clients)
        most = c->limits.clients;
    return most - most / 8 * (size_t) (RIGHT_OPERATE - right) - (account_is_trusted(a->uid) ? 0 : most / 32);
}

const char *account_connection(const struct control *c, const struct control_account *a, enum right right, char *buffer, size_t size) {
    const struct settings *s = c->service->get_settings(c->userdata);
    size_t most = clients_max(c, a, right, s->connections);

    if (!account_is_trusted(a->uid) && a->n_clients >= s->user_connections)
        snprintf(buffer, size, "your user has %zu connections to berthd, as many as user-connections = %u allows", a->n_clients,
                 s->user_connections);
    else if (c->n_clients >= most)
        snprintf(buffer, size,
                 "berthd has %zu connections, as many as your user may share (connections = %u; the rest is "
                 "for operators and root)",
                 c->n_clients, s->connections);
    else
        return NULL;
    return buffer;
}

void account_take(struct control *c, struct control_account *a, size_t bytes) {
    a->bytes += bytes;
    if (!account_is_trusted(a->uid))
        c->bytes += bytes;
}

void account_give(struct control *c, struct control_account *a, size_t bytes) {
    a->bytes -= bytes;
    if (!account_is_trusted(a->uid))
        c->bytes -= bytes;
}

const char *account_room(const struct control *c, const struct control_account *a, size_t bytes, char *buffer, size_t size) {
    const struct settings *s = c->service->get_settings(c->userdata);

    if (account_is_trusted(a->uid))
        return NULL;
    if (a->bytes + bytes > s->user_buffer)
        snprintf(buffer, size, "calls and answers of your user would take more than user-buffer = %ju bytes", (uintmax_t) s->user_buffer);
    else if (c->bytes + bytes > SETTINGS_BUFFERS * s->user_buffer)
        snprintf(buffer, size, "calls and answers of all users would take more than %d times user-buffer = %ju bytes", SETTINGS_BUFFERS,
                 (uintmax_t) s->user_buffer);
    else
        return NULL;
    return buffer;
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

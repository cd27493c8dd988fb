/* SPDX-License-Identifier: MIT */

/* Graceful end of a control server whose listening socket lives on: it answers the clients that it has
 * accepted, and the next server accepts the others. */

#include "daemon/control/control.h"

#include "base/listener.h"
#include "daemon/control/control-internal.h"

/* Returns whether the client has called before and awaits no reply. Clients of streams ("more") reconnect. */
static bool client_is_drained(const struct control_client *c) {
    list_foreach(call, &c->calls, struct control_call, link)
        if (!call->more)
            return false;
    return c->has_called && c->in.size == 0 && list_is_empty(&c->out);
}

void control_drain_check(struct control *c) {
    void (*on_drained)(void *userdata) = c->on_drained;

    if (!on_drained)
        return;
    list_foreach(client, &c->clients, struct control_client, link)
        if (!client_is_drained(client))
            return;
    c->on_drained = NULL;
    on_drained(c->drained_userdata);
}

void control_on_drain_due(void *userdata) {
    struct control *c = userdata;
    void (*on_drained)(void *userdata) = c->on_drained;

    c->on_drained = NULL;
    if (on_drained)
        on_drained(c->drained_userdata);
}

int control_drain(struct control *c, usec_t within, void (*on_drained)(void *userdata), void *userdata) {
    if (c->sockets[0].path)
        return CONTROL_E_OURS;
    if (!c->sockets[0].listener)
        return -EALREADY;
    timer_set_in(&c->drain_limit, within);
    defer_set(&c->work_woken); /* checks whether all clients are drained already */
    for (size_t i = 0; i < ELEMENTSOF(c->sockets); i++)
        c->sockets[i].listener = listener_free(c->sockets[i].listener);
    c->on_drained = on_drained;
    c->drained_userdata = userdata;
    return 0;
}

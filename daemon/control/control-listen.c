/* SPDX-License-Identifier: MIT */

/* The listening sockets of the control server: control.sock, where the user of a caller decides its rights,
 * and look.sock, where everybody may only look. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/connection.h"
#include "base/discard.h"
#include "base/listener.h"
#include "daemon/control/control-internal.h"

/* Refuses a connection. The server does not wait until the client reads the error, so the error may be
 * lost. */
static void turn_away(struct control *c, int fd, const char *why) {
    char text[ACCOUNT_TEXT_SIZE + 64];
    int n = snprintf(text, sizeof(text), "{\"error\":\"io.berth.Away\",\"parameters\":{\"text\":\"%s\"}}", why);

    (void) send(fd, text, (size_t) n + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    discard_connection(c->discard, fd);
}

static void control_on_connection(int fd, void *userdata) {
    struct control_socket *socket = userdata;
    struct control *c = socket->control;
    struct control_account *account;
    char text[ACCOUNT_TEXT_SIZE];
    struct peer peer;
    const char *why;

    if (connection_prepare(fd) < 0 || socket_peer(fd, &peer) < 0 || !(account = account_get(c, peer.uid))) {
        discard_connection(c->discard, fd);
        return;
    }
    if (account_is_refused(account))
        why = "your user passed a descriptor to berthd, which accepts none; berthd refuses its connections for "
              "a minute";
    else
        why = account_connection(c, account, socket->looks_only ? RIGHT_LOOK : control_right(c, fd), text,
                                 sizeof(text));
    if (why)
        turn_away(c, fd, why);
    else
        (void) control_client_new(c, fd, &peer, account, socket->looks_only);
}

/* Makes the socket. */
static int make(struct control *c, struct control_socket *socket, const char *path) {
    const struct account *group = &c->service->get_settings(c->userdata)->run_group;
    int r;

    /* berthd holds the lock of its runtime directory. So a listener there can only be a forked child of a
     * killed berthd that has not reached its exec. */
    r = socket_remove(path);
    socket->fd = r < 0 ? r : socket_listen(path, SOCK_STREAM, 0660);
    if (socket->fd < 0)
        return socket->fd;
    socket->path = strdup(path);
    if (!socket->path) {
        (void) unlink(path);
        return -ENOMEM;
    }
    /* A user other than root can give the socket only to one of its own groups. Else the socket keeps the
     * user's group. */
    if (!socket->looks_only && group->is_known && chown(path, (uid_t) -1, group->id) < 0 && errno != EPERM)
        return -errno;
    return 0;
}

int control_listen(struct control *c, struct control_socket *socket, const char *path, int listen_fd) {
    int r;

    socket->control = c;
    socket->fd = listen_fd;
    if (listen_fd < 0)
        r = make(c, socket, path);
    else /* the service manager may have left it blocking */
        r = fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    if (r < 0)
        return r;
    return listener_new(&socket->listener, c->event, socket->fd, CONTROL_PRIORITY, control_on_connection, socket);
}

int control_add_look(struct control *c, const char *path, int listen_fd) {
    c->sockets[1].looks_only = true;
    return control_listen(c, &c->sockets[1], path, listen_fd);
}

/* Clients that were not accepted yet may have sent data. A plain close would reset their connections. */
static void close_socket(struct control *c, struct control_socket *socket) {
    int fd;

    socket->listener = listener_free(socket->listener);
    if (socket->path) {
        (void) unlink(socket->path);
        (void) shutdown(socket->fd, SHUT_RDWR);
        while (c->discard && (fd = accept4(socket->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
            discard_connection(c->discard, fd);
    }
    socket->fd = close_fd(socket->fd);
    free(steal_pointer(&socket->path));
}

void control_close(struct control *c) {
    for (size_t i = 0; i < ELEMENTSOF(c->sockets); i++)
        close_socket(c, &c->sockets[i]);
}

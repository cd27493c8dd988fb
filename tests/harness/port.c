/* SPDX-License-Identifier: MIT */
#include "tests/harness/port.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

/* Below the ports of clients (net.ipv4.ip_local_port_range), one of which would take it meanwhile. */
#define PORT_FIRST 10000
#define PORT_LAST 32000

static bool bind_to(int fd, const void *address, size_t size) {
    return fd >= 0 && bind(fd, address, (socklen_t) size) == 0;
}

/* Other tests run beside this one. An abstract socket, open until this process ends, reserves the port. */
static bool take(unsigned port) {
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t) port)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                        lock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void) snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "berth-test-port-%u", port);
    if (!bind_to(lock, &un, sizeof(un)) || !bind_to(fd, &in, sizeof(in)))
        return false;
    (void) steal_fd(&lock);
    return true;
}

unsigned port_reserve(void) {
    for (unsigned i = 0; i < 1000; i++) {
        unsigned port = 0;

        if (getrandom(&port, sizeof(port), 0) != sizeof(port))
            abort();
        port = PORT_FIRST + port % (PORT_LAST - PORT_FIRST);
        if (take(port))
            return port;
    }
    abort();
}

/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/web.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/harness/port.h"
#include "tests/harness/test.h"

static void start(struct web *w, const struct host *h) {
    char program[256], listen[32], token[96], credentials[96];
    char *argv[] = {program,
                    (char *) "--listen", listen,
                    (char *) "--unix", w->unix_path,
                    (char *) "--berth", (char *) h->socket,
                    (char *) "--actions",
                    (char *) "--user-header", (char *) WEB_USER_HEADER,
                    (char *) "--host", (char *) WEB_SITE,
                    NULL};
    char *environment[] = {credentials, NULL};
    FILE *f;

    w->port = port_reserve();
    snprintf(program, sizeof(program), "%s/berth-web", cluster.build);
    snprintf(listen, sizeof(listen), "127.0.0.1:%u", w->port);
    snprintf(w->unix_path, sizeof(w->unix_path), "%s/web.sock", cluster.folder);
    snprintf(token, sizeof(token), "%s/web-token", cluster.folder);
    snprintf(credentials, sizeof(credentials), "CREDENTIALS_DIRECTORY=%s", cluster.folder);
    f = fopen(token, "we");
    TEST_FATAL(f && fputs(WEB_TOKEN "\n", f) >= 0 && fclose(f) == 0, "no token");
    w->child = child_start(argv, environment);
    TEST_FATAL(w->child != NULL, "no berth-web");
}

void web_up(struct web *w, const struct host *h) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    const char *answer;

    start(w, h);
    /* berthd's first picture comes after its first answer. */
    while (web_ask(web_connect(w->port), "GET", "/healthz", "Host: localhost\r\n", "", &answer) != 200 ||
           web_ask(web_connect(w->port), "GET", "/api/1/overview", "Host: localhost\r\n", "", &answer) != 200) {
        TEST_FATAL(clock_boottime() < until, "berth-web is not there");
        child_turn(clock_boottime() + 50 * USEC_PER_MSEC);
    }
}

void web_down(struct web *w) {
    child_kill(w->child, SIGTERM);
    CU_ASSERT(child_await(w->child, HOST_PATIENCE) && w->child->exit_code == 0);
    TEST_STRING(child_text(w->child, 2), "");
    w->child = child_free(w->child);
}

int web_connect(unsigned port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t) port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
        fd = close_fd(fd);
    return fd;
}

unsigned web_send(int fd, const char *text, const char **ret) {
    static char answer[256 * 1024];
    usec_t until = clock_boottime() + HOST_PATIENCE;
    size_t size = 0;
    unsigned status = 0;
    ssize_t n = 1;

    if (fd < 0 || send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        n = 0;
    while (n > 0 && size < sizeof(answer) - 1 && clock_boottime() < until) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        n = poll(&p, 1, (int) (HOST_PATIENCE / USEC_PER_MSEC)) == 1 ? recv(fd, answer + size, sizeof(answer) - 1 - size, 0) : -1;
        size += n > 0 ? (size_t) n : 0;
    }
    answer[size] = '\0';
    close_fd(fd);
    (void) sscanf(answer, "HTTP/1.1 %u", &status);
    *ret = answer;
    return status;
}

unsigned web_ask(int fd, const char *method, const char *path, const char *headers, const char *body, const char **ret) {
    char text[16 * 1024];

    snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s", method, path, headers, strlen(body),
             body);
    return web_send(fd, text, ret);
}

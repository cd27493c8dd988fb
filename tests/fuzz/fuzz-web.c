/* SPDX-License-Identifier: MIT */

/* What a client may send to berth-web: the bytes go through a real connection, in two parts; the first byte chooses the listener. What
 * libmicrohttpd and request.c let through has what its route needs, and only then is berthd called. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/client/client.h"
#include "base/cleanup.h"
#include "base/socket.h"
#include "tests/fuzz/fuzz.h"
#include "web/act.h"
#include "web/http.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define STREAM_BYTES 3000
#define TOLD_MAX 64

static sd_event *event;
static struct http *http;
static struct act *act;
static char folder[] = "/tmp/berth-fuzz-web-XXXXXX", tcp_path[64], unix_path[64], berthd_path[64];

/* The input under way. */
static const char *input;
static size_t input_size;
static bool is_unix;
static struct exchange *later[TOLD_MAX]; /* answered after the turn */

static bool has(const char *word) {
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= input_size; i++)
        if (strncasecmp(input + i, word, n) == 0)
            return true;
    return false;
}

/* --- what berth-web would do with requests --- */

static void answer(struct exchange *x, const char *text) {
    http_answer(x, &(struct http_answer) {.status = 200, .type = "text/plain", .body = text, .n_body = strlen(text)});
}

static ssize_t on_read(void *userdata, char *buffer, size_t size) {
    size_t *left = userdata, n = size < *left ? size : *left;

    memset(buffer, 'x', n);
    *left -= n;
    return n > 0 ? (ssize_t) n : -ETIME;
}

static void check(const struct http_request *q) {
    bool is_post = q->route >= ROUTE_DO;

    FUZZ_ASSERT(q->rest && q->pool && q->body && strlen(q->body) <= q->n_body && q->n_body <= REQUEST_BODY_MAX);
    FUZZ_ASSERT(is_post || q->n_body == 0);
    FUZZ_ASSERT(!is_post || (has("POST") && has("X-Berth") && has("application/json") && (has("Origin") || has("Sec-Fetch-Site"))));
    FUZZ_ASSERT(!q->user || (is_unix && has("X-User")));
    FUZZ_ASSERT((q->route == ROUTE_POOL || q->route == ROUTE_EXPLAIN) == (q->rest[0] != '\0'));
}

static void on_request(struct exchange *x, const struct http_request *q, void *userdata) {
    static size_t left;
    size_t i = 0;

    (void) userdata;
    check(q);
    while (i < TOLD_MAX && later[i])
        i++;
    if (q->route >= ROUTE_DO) {
        act_on_request(act, x, q);
    } else if (q->route == ROUTE_STREAM) {
        left = STREAM_BYTES;
        http_stream(x, on_read, &left);
    } else if (q->route == ROUTE_METRICS && i < TOLD_MAX) {
        later[i] = x;
        http_wait(x);
    } else {
        answer(x, "some text\n");
    }
}

static void on_end(struct exchange *x, void *userdata) {
    (void) userdata;
    act_on_end(act, x);
    for (size_t i = 0; i < TOLD_MAX; i++)
        if (later[i] == x)
            later[i] = NULL;
}

/* --- berthd --- */

/* Nobody may act who proves nothing: a user by the unix socket, or a cookie that a login gave. */
static int berthd_on_client(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
    static const char reply[] = "{\"parameters\":{}}";
    _cleanup_close_ int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

    (void) source, (void) revents, (void) userdata;
    FUZZ_ASSERT(has("berth-session=") || (is_unix && has("X-User")));
    (void) !send(client, reply, sizeof(reply), MSG_NOSIGNAL);
    return 0;
}

/* --- the loop --- */

static void clean_up(void) {
    (void) unlink(tcp_path);
    (void) unlink(unix_path);
    (void) unlink(berthd_path);
    (void) rmdir(folder);
}

static int listen_at(char path[static 64], const char *name) {
    int fd;

    (void) snprintf(path, 64, "%s/%s", folder, name);
    fd = socket_listen(path, SOCK_STREAM, 0600);
    FUZZ_ASSERT(fd >= 0);
    return fd;
}

static void set_up(void) {
    static const struct site site = {.hosts = {"jobs.example"}, .n_hosts = 1, .prefix = "", .user_header = "X-User", .has_actions = true};
    static const struct http_handler handler = {on_request, on_end, NULL};

    (void) signal(SIGPIPE, SIG_IGN);
    FUZZ_ASSERT(mkdtemp(folder) != NULL);
    (void) atexit(clean_up);
    FUZZ_ASSERT(sd_event_new(&event) >= 0 && act_new(&act, event, TOKEN) == 0 && http_new(&http, event, &site, &handler) == 0);
    FUZZ_ASSERT(sd_event_add_io(event, NULL, listen_at(berthd_path, "berthd"), EPOLLIN, berthd_on_client, NULL) >= 0);
    FUZZ_ASSERT(http_listen(http, listen_at(tcp_path, "tcp"), false) == 0);
    FUZZ_ASSERT(http_listen(http, listen_at(unix_path, "unix"), true) == 0);
    client_set_socket(berthd_path);
}

static void turn(void) {
    for (int i = 0; i < 64 && sd_event_run(event, 0) > 0; i++)
        ;
    for (size_t i = 0; i < TOLD_MAX; i++)
        if (later[i]) {
            struct exchange *x = later[i];

            later[i] = NULL;
            answer(x, "figures\n");
        }
}

/* Reads what there is. Each answer that begins in it is one of HTTP. */
static void read_answers(int fd) {
    char text[65536];
    ssize_t n;

    for (bool is_first = true; (n = recv(fd, text, sizeof(text), MSG_DONTWAIT)) > 0; is_first = false) {
        FUZZ_ASSERT(!is_first || (n > 9 && memcmp(text, "HTTP/1.", 7) == 0));
        turn();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_close_ int fd = -1;
    size_t half = size / 2;

    if (size == 0)
        return 0;
    if (!http)
        set_up();
    is_unix = data[0] & 1;
    input = (const char *) data + 1;
    input_size = size - 1;
    fd = socket_connect(is_unix ? unix_path : tcp_path, SOCK_STREAM);
    FUZZ_ASSERT(fd >= 0);
    (void) !send(fd, input, half, MSG_DONTWAIT | MSG_NOSIGNAL);
    turn();
    (void) !send(fd, input + half, input_size - half, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void) shutdown(fd, SHUT_WR);
    turn();
    read_answers(fd);
    fd = close_fd(fd);
    turn();
    turn();
    return 0;
}

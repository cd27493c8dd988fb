/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup */

/* The client asks three sentinels for the master. They reply, hang, close the connection or reply nonsense.
 * One test lets each allocation fail. */

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/redis/client/sentinels.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

#define SENTINELS 3
#define CONNECTIONS 64

WRAP(FAULT_ZEROED_MEMORY, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_ZEROED_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAULT_ZEROED_MEMORY, NULL, void *, realloc, (void *p, size_t size), (p, size))
WRAP(FAULT_ZEROED_MEMORY, NULL, char *, strdup, (const char *text), (text))

/* --- sentinels --- */

enum behaviour { ANSWER, ANSWER_TWICE, HANG, CLOSE, NONSENSE, REFUSE };

static const char answer[] = "*8\r\n$4\r\nname\r\n$5\r\nfleet\r\n$2\r\nip\r\n$9\r\n127.0.0.9\r\n$4\r\nport\r\n$4\r\n7000\r\n"
                             "$12\r\nconfig-epoch\r\n$1\r\n3\r\n";

static struct fake {
    int fd;
    enum behaviour behaviour;
    unsigned n_asked, n_accepted;
} fakes[SENTINELS];

static struct peer {
    struct fake *fake;
    int fd;
    sd_event_source *source;
} peers[CONNECTIONS];

static sd_event *event;

static void send_text(int fd, const char *text) {
    CU_ASSERT(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t) strlen(text));
}

static void close_peer(struct peer *peer) {
    peer->source = sd_event_source_disable_unref(peer->source);
    if (peer->fake)
        (void) close(peer->fd);
    *peer = (struct peer) {};
}

/* The commands are short and come together: CLIENT SETNAME, or SENTINEL MASTER, or both. */
static int on_command(_unused_ sd_event_source *source, int fd, _unused_ uint32_t events, void *userdata) {
    struct peer *peer = userdata;
    char text[4096];
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

    if (n <= 0) {
        close_peer(peer);
        return 0;
    }
    text[n] = '\0';
    if (strstr(text, "SETNAME"))
        send_text(fd, "+OK\r\n");
    if (!strstr(text, "SENTINEL\r\n$6\r\nMASTER\r\n$5\r\nfleet"))
        return 0;
    peer->fake->n_asked++;
    switch (peer->fake->behaviour) {
    case ANSWER_TWICE:
        send_text(fd, answer);
        send_text(fd, answer);
        break;
    case ANSWER:
        send_text(fd, answer);
        break;
    case CLOSE:
        close_peer(peer);
        break;
    case NONSENSE:
        send_text(fd, "$3\r\nyes\r\n");
        break;
    case REFUSE:
        send_text(fd, "-NOPERM no\r\n");
        break;
    case HANG:
        break;
    }
    return 0;
}

static int on_connection(_unused_ sd_event_source *source, int fd, _unused_ uint32_t events, void *userdata) {
    struct fake *fake = userdata;
    struct peer *peer = peers;

    fake->n_accepted++;
    while (peer->fake)
        peer++;
    *peer = (struct peer) {.fake = fake, .fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    CU_ASSERT(sd_event_add_io(event, &peer->source, peer->fd, EPOLLIN, on_command, peer) >= 0);
    return 0;
}

static void start_fakes(char *hosts, size_t size) {
    hosts[0] = '\0';
    for (unsigned i = 0; i < SENTINELS; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof(address);
        size_t used = strlen(hosts);

        fakes[i] = (struct fake) {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
        CU_ASSERT_FATAL(bind(fakes[i].fd, (struct sockaddr *) &address, length) == 0 && listen(fakes[i].fd, 64) == 0);
        CU_ASSERT_FATAL(getsockname(fakes[i].fd, (struct sockaddr *) &address, &length) == 0);
        CU_ASSERT_FATAL(sd_event_add_io(event, NULL, fakes[i].fd, EPOLLIN, on_connection, &fakes[i]) >= 0);
        (void) snprintf(hosts + used, size - used, "%s127.0.0.1:%u", i > 0 ? "," : "", ntohs(address.sin_port));
    }
}

/* --- the question --- */

static struct redis_settings settings;
static struct redis_connection_options options;
static struct redis_dial dial;
static struct sentinels sentinels;
static char hosts[128];
static unsigned n_found, n_none;
static char text[SOCKET_REASON_SIZE];
static enum redis_error error;

static void on_found(const struct moved *master, _unused_ void *userdata) {
    n_found++;
    TEST_STRING(master->host, "127.0.0.9");
    TEST_INT(master->port, 7000);
}

static void on_none(enum redis_error e, const char *why, _unused_ void *userdata) {
    n_none++;
    error = e;
    (void) snprintf(text, sizeof(text), "%s", why);
}

static void up(void) {
    static char empty[] = "", master[] = "fleet";

    CU_ASSERT_FATAL(sd_event_new(&event) >= 0);
    start_fakes(hosts, sizeof(hosts));
    settings = (struct redis_settings) {
        .username = empty, .password_file = empty,
        .sentinels = {.hosts = hosts, .master = master, .username = empty, .password_file = empty},
        .tls = {.ca = empty, .certificate = empty, .key = empty, .server_name = empty},
        .timeout_usec = 300 * USEC_PER_MSEC, .connect_timeout_usec = 10 * USEC_PER_SEC,
    };
    options = (struct redis_connection_options) {.settings = &settings, .client_name = "berth-test"};
    CU_ASSERT_FATAL(redis_dial_init(&dial, event, &options, &(struct redis_dial_handler) {}) >= 0);
    CU_ASSERT_FATAL(sentinels_init(&sentinels, &dial, &(struct sentinels_handler) {on_found, on_none, NULL}) >= 0);
}

static void down(void) {
    sentinels_done(&sentinels);
    redis_dial_done(&dial);
    for (size_t i = 0; i < CONNECTIONS; i++)
        close_peer(&peers[i]);
    for (size_t i = 0; i < SENTINELS; i++)
        (void) close(fakes[i].fd);
    event = sd_event_unref(event);
}

static void ask_again(enum behaviour a, enum behaviour b, enum behaviour c) {
    n_found = n_none = 0;
    text[0] = '\0';
    fakes[0].behaviour = a;
    fakes[1].behaviour = b;
    fakes[2].behaviour = c;
    sentinels_ask(&sentinels);
}

static void begin(enum behaviour a, enum behaviour b, enum behaviour c) {
    sentinels_close(&sentinels);
    ask_again(a, b, c);
}

static void run(void) {
    usec_t end = usec_add(clock_boottime(), 20 * USEC_PER_SEC);

    while (n_found + n_none == 0 && clock_boottime() < end)
        CU_ASSERT(sd_event_run(event, USEC_PER_SEC) >= 0);
}

static void ask(enum behaviour a, enum behaviour b, enum behaviour c, bool is_found) {
    begin(a, b, c);
    run();
    TEST_INT(n_found, is_found);
    TEST_INT(n_none, !is_found);
}

static void expect(const char *part) {
    if (!strstr(text, part))
        TEST_STRING(text, part);
}

static void test_behaviours(void) {
    ask(ANSWER, ANSWER, ANSWER, true);
    ask(ANSWER, ANSWER, HANG, true);
    ask(ANSWER_TWICE, HANG, ANSWER_TWICE, true);
    ask(ANSWER_TWICE, HANG, HANG, false); /* an answer counts once */
    expect("sentinels: 1 of 3 know the master \"fleet\" (127.0.0.1:");
    expect("no answer in time; 127.0.0.1:"); /* both others are awaited */
    ask(ANSWER, CLOSE, NONSENSE, false);
    expect("its answer to SENTINEL MASTER is malformed");
    TEST_INT(error, REDIS_ERROR_RETRY);
    ask(CLOSE, ANSWER, ANSWER, true);
}

/* A question that is stopped, or replaced by another, calls no handler. */
static void test_stop(void) {
    unsigned n_asked = fakes[0].n_asked;
    usec_t end;

    begin(ANSWER, ANSWER, ANSWER);
    sentinels_stop(&sentinels);
    begin(HANG, HANG, HANG);
    end = usec_add(clock_boottime(), 10 * USEC_PER_SEC);
    while (fakes[0].n_asked == n_asked && clock_boottime() < end)
        CU_ASSERT(sd_event_run(event, USEC_PER_SEC) >= 0);
    TEST_INT(fakes[0].n_asked, n_asked + 1);
    ask(ANSWER, ANSWER, ANSWER, true);
    begin(HANG, HANG, HANG);
    sentinels_stop(&sentinels);
    sentinels_stop(&sentinels);
    TEST_INT(n_found + n_none, 0);
}

/* Each question is sent on the connections of the one before, but for those that broke, or are still to answer. */
static void test_kept(void) {
    static const unsigned n_accepted[] = {1, 2, 3};

    ask(NONSENSE, CLOSE, HANG, false);
    ask_again(NONSENSE, NONSENSE, REFUSE);
    run();
    ask_again(NONSENSE, NONSENSE, NONSENSE); /* a new connection reads the password again */
    run();
    for (size_t i = 0; i < SENTINELS; i++) {
        TEST_INT(fakes[i].n_asked, 3);
        TEST_INT(fakes[i].n_accepted, n_accepted[i]);
    }
    ask_again(HANG, HANG, HANG);
    sentinels_stop(&sentinels);
    ask_again(ANSWER, ANSWER, ANSWER); /* not with what the last question may still bring */
    run();
    TEST_INT(n_found, 1);
    TEST_INT(fakes[0].n_accepted, 2);
}

static void test_hosts(void) {
    char dead[] = "127.0.0.1:1,127.0.0.1:1,127.0.0.1:1";

    settings.sentinels.hosts = dead;
    ask(ANSWER, ANSWER, ANSWER, false);
    expect("127.0.0.1:1: ");
    expect("Connection refused");
    settings.sentinels.hosts = hosts;
}

static bool fail_at(unsigned k) {
    bool is_met;

    fault_begin(FAULT_ZEROED_MEMORY, k, 1);
    begin(ANSWER, ANSWER, ANSWER);
    run();
    is_met = fault_end();
    TEST_INT(n_found + n_none, 1);
    CU_ASSERT(n_found == 1 || text[0] != '\0');
    CU_ASSERT(n_none == 0 || error == REDIS_ERROR_RETRY);
    ask(ANSWER, ANSWER, ANSWER, true);
    return is_met;
}

static void test_memory(void) {
    unsigned k = 1;

    while (fail_at(k))
        k++;
    CU_ASSERT(k > 10);
}

static CU_TestInfo tests[] = {
    {"behaviours", test_behaviours}, {"stop", test_stop}, {"kept", test_kept}, {"hosts", test_hosts}, {"memory", test_memory}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "sentinels", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});

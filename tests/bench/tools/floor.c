/* SPDX-License-Identifier: MIT */

/* The floor of a hand-over from command to command: the processes of berth and their messages, with nothing in them. No
 * records, no log, no lease, no rights; a message is one byte, and the lock is one key and one list.
 *
 *   floor host SOCKET              a daemon with a lock of its own
 *   floor host SOCKET REDIS NAME   a daemon of several that share a lock in Redis; NAME is a or b
 *   floor run SOCKET COMMAND...    holds the lock while the command runs; its child is forked before the grant */

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS 16 /* at once */
#define CALLS 64   /* without an answer */
#define RELEASE (-1)

static _Noreturn void fail(const char *what) {
    perror(what);
    exit(1);
}

static int unix_socket(const char *path, int (*use)(int, const struct sockaddr *, socklen_t)) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || use(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
        fail(path);
    return fd;
}

static void put(int fd, char byte) {
    if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
        fail("send");
}

/* --- the lock --- */

static struct pollfd fds[3 + CLIENTS]; /* listening socket, Redis's two, clients */
static struct pollfd *const clients = fds + 3;

static struct {
    redisContext *calls, *pushes;
    char host, claim[64], release[64];
    int waits_for[CALLS]; /* clients, or RELEASE, in order of the calls */
    unsigned first, end;
} shared;

static struct {
    bool is_held;
    int queue[CLIENTS];
    unsigned n;
} own;

static void grant(int client) {
    put(clients[client].fd, 'g');
}

static void call(const char *script, int client) {
    char name[16]; /* of the client, for all hosts */
    int done = 0;

    snprintf(name, sizeof(name), "%c%d", shared.host, client);
    shared.waits_for[shared.end++ % CALLS] = client;
    if (redisAppendCommand(shared.calls, "EVALSHA %s 2 lock queue %s", script, name) != REDIS_OK)
        fail("redis");
    while (!done)
        if (redisBufferWrite(shared.calls, &done) != REDIS_OK)
            fail("redis");
}

static void claim(int client) {
    if (shared.calls) {
        call(shared.claim, client);
    } else if (own.is_held) {
        own.queue[own.n++] = client;
    } else {
        own.is_held = true;
        grant(client);
    }
}

static void release(void) {
    if (shared.calls) {
        call(shared.release, RELEASE);
    } else if (own.n == 0) {
        own.is_held = false;
    } else {
        grant(own.queue[0]);
        memmove(own.queue, own.queue + 1, --own.n * sizeof(own.queue[0]));
    }
}

/* Returns the next reply that is there, or NULL. */
static redisReply *next_reply(redisContext *context) {
    void *reply = NULL;

    if (redisGetReplyFromReader(context, &reply) != REDIS_OK)
        fail("redis");
    return reply;
}

static void on_answer(const redisReply *reply) {
    int client = shared.waits_for[shared.first++ % CALLS];

    if (reply->type != REDIS_REPLY_INTEGER)
        fail("redis");
    if (client != RELEASE && reply->integer)
        grant(client);
}

static void on_push(const redisReply *reply) {
    if (reply->elements == 3 && reply->element[2]->str)
        grant(atoi(reply->element[2]->str + 1));
}

static void read_redis(redisContext *context, void (*on_reply)(const redisReply *)) {
    redisReply *reply;

    if (redisBufferRead(context) != REDIS_OK)
        fail("redis");
    while ((reply = next_reply(context))) {
        on_reply(reply);
        freeReplyObject(reply);
    }
}

/* --- the host --- */

static void load(const char *script, char ret_sha[static 64]) {
    redisReply *reply = redisCommand(shared.calls, "SCRIPT LOAD %s", script);

    if (!reply || reply->type != REDIS_REPLY_STRING)
        fail("redis");
    snprintf(ret_sha, 64, "%s", reply->str);
    freeReplyObject(reply);
}

static redisContext *reach(const char *path, struct pollfd *ret) {
    redisContext *context = redisConnectUnix(path);

    if (!context || context->err)
        fail(path);
    *ret = (struct pollfd) {.fd = context->fd, .events = POLLIN};
    return context;
}

static void share(const char *redis, char host) {
    shared.host = host;
    shared.calls = reach(redis, &fds[1]);
    shared.pushes = reach(redis, &fds[2]);
    load("if redis.call('SET', KEYS[1], ARGV[1], 'NX') then return 1 end redis.call('RPUSH', KEYS[2], ARGV[1]) return 0", shared.claim);
    load("local next = redis.call('LPOP', KEYS[2]) if not next then redis.call('DEL', KEYS[1]) return 0 end "
         "redis.call('SET', KEYS[1], next) redis.call('PUBLISH', 'to:' .. string.sub(next, 1, 1), next) return 0",
         shared.release);
    freeReplyObject(redisCommand(shared.pushes, host == 'a' ? "SUBSCRIBE to:a" : "SUBSCRIBE to:b"));
}

static void accept_client(int listener) {
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].fd < 0) {
            clients[i].fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            return;
        }
    fail("too many clients");
}

static void read_client(int client) {
    char byte;

    if (recv(clients[client].fd, &byte, 1, 0) != 1) {
        (void) close(clients[client].fd);
        clients[client].fd = -1;
    } else if (byte == 'c') {
        claim(client);
    } else {
        release();
    }
}

static _Noreturn void be_host(const char *path) {
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* the bench may end early */
    fds[0] = (struct pollfd) {.fd = unix_socket(path, bind), .events = POLLIN};
    if (listen(fds[0].fd, CLIENTS) < 0)
        fail("listen");
    for (;;) {
        if (poll(fds, 3 + CLIENTS, -1) < 0)
            fail("poll");
        if (fds[1].revents)
            read_redis(shared.calls, on_answer);
        if (fds[2].revents)
            read_redis(shared.pushes, on_push);
        for (int i = 0; i < CLIENTS; i++)
            if (clients[i].revents)
                read_client(i);
        if (fds[0].revents)
            accept_client(fds[0].fd);
    }
}

/* --- the watcher --- */

static int run(const char *path, char **command) {
    int gate[2], status, fd = unix_socket(path, connect);
    char byte;
    pid_t pid;

    put(fd, 'c');
    if (pipe2(gate, O_CLOEXEC) < 0)
        fail("pipe");
    pid = fork();
    if (pid == 0) {
        (void) close(gate[1]);
        if (read(gate[0], &byte, 1) == 1)
            (void) execv(command[0], command);
        _exit(127);
    }
    if (pid < 0 || recv(fd, &byte, 1, 0) != 1 || write(gate[1], "g", 1) != 1 || waitpid(pid, &status, 0) != pid)
        fail("run");
    put(fd, 'e');
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 3 + CLIENTS; i++)
        fds[i] = (struct pollfd) {.fd = -1, .events = POLLIN};
    if (argc > 3 && strcmp(argv[1], "run") == 0)
        return run(argv[2], argv + 3);
    if (argc == 5 && strcmp(argv[1], "host") == 0)
        share(argv[3], argv[4][0]);
    else if (argc != 3 || strcmp(argv[1], "host") != 0)
        return 64;
    be_host(argv[2]);
}

/* SPDX-License-Identifier: MIT */

/* The configurations of web/proxy in nginx, Caddy and Apache, as they stand but for paths, names and passwords: they pass on the page, the
 * actions of a user, and each frame of the stream at once. What a browser says about its user does not count. */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/harness/host/web.h"
#include "tests/harness/port.h"
#include "tests/harness/test.h"

#define NOBODY 65534
#define USER "Authorization: Basic YWxpY2U6c2VjcmV0\r\n" /* alice:secret */
#define PASSWORDS "alice:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"
#define BCRYPT "$2a$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
#define JSON "Content-Type: application/json\r\nX-Berth: 1\r\n"
#define DELAY_MAX (5 * USEC_PER_SEC) /* of a frame; a proxy that buffers waits for more frames than that */

struct change {
    const char *from, *to; /* in `to`, @FOLDER@ and @PORT@ stand for those of the test */
};

static const struct proxy {
    const char *name, *program, *file;
    const char *before, *after; /* what the configuration stands in */
    struct change changes[3];
    const char *words[8];      /* behind the program */
    unsigned unknown_host;     /* status of a request with a Host that nobody named; Caddy answers with an empty page */
} proxies[] = {
    {"nginx", "nginx", "nginx.conf",
     /* The end of a quiet stream is the configuration's own. */
     "daemon off;\npid @FOLDER@/pid;\nevents {}\nhttp {\naccess_log off;\nproxy_read_timeout 100ms;\nproxy_temp_path @FOLDER@/a;\n"
     "client_body_temp_path @FOLDER@/b;\nfastcgi_temp_path @FOLDER@/c;\nuwsgi_temp_path @FOLDER@/d;\nscgi_temp_path @FOLDER@/e;\n"
     "server {\nlisten 127.0.0.1:@PORT@;\n",
     "}\n}\n",
     {{"/run/berth-web", "@FOLDER@"}, {"/etc/nginx", "@FOLDER@"}},
     {"-e", "stderr", "-c", "@FOLDER@/conf"},
     421},
    {"Caddy", "caddy", "Caddyfile",
     "{\nadmin off\nauto_https off\n}\n",
     "",
     {{"/run/berth-web", "@FOLDER@"},
      {"\n" WEB_SITE " {", "\nhttp://" WEB_SITE ":@PORT@ {"},
      {"$2a$14$replace.this.by.the.output.of.caddy.hash-password", BCRYPT}},
     {"run", "--adapter", "caddyfile", "--config", "@FOLDER@/conf"},
     200},
    {"Apache", "apache2", "apache.conf",
     "ServerRoot /usr/lib/apache2\nDefaultRuntimeDir @FOLDER@\nPidFile @FOLDER@/pid\nErrorLog @FOLDER@/log\nListen 127.0.0.1:@PORT@\n"
     "ServerName localhost\nLoadModule mpm_event_module modules/mod_mpm_event.so\n"
     /* Those that Debian loads anyway, and those that the configuration names. */
     "LoadModule authn_core_module modules/mod_authn_core.so\nLoadModule authn_file_module modules/mod_authn_file.so\n"
     "LoadModule authz_core_module modules/mod_authz_core.so\nLoadModule authz_user_module modules/mod_authz_user.so\n"
     "LoadModule auth_basic_module modules/mod_auth_basic.so\nLoadModule headers_module modules/mod_headers.so\n"
     "LoadModule proxy_module modules/mod_proxy.so\nLoadModule proxy_http_module modules/mod_proxy_http.so\n",
     "",
     {{"/run/berth-web", "@FOLDER@"}, {"/etc/apache2", "@FOLDER@"}},
     {"-D", "FOREGROUND", "-f", "@FOLDER@/conf"},
     421},
};

static struct host *ant;
static struct web web;
static struct child *running; /* the proxy; NULL: none */
static char folder[64];
static unsigned port;

/* --- a proxy --- */

/* Replaces all of a text; fatal if it is not there. Returns a new text, and frees the old one. */
static char *replace(char *text, const char *from, const char *to) {
    char *result = NULL, *at = strstr(text, from), *rest = text;
    size_t size;
    FILE *f = open_memstream(&result, &size);

    TEST_FATAL(f && at, from);
    for (; at; rest = at + strlen(from), at = strstr(rest, from))
        fprintf(f, "%.*s%s", (int) (at - rest), rest, to);
    fprintf(f, "%s", rest);
    TEST_FATAL(fclose(f) == 0, "no memory");
    free(text);
    return result;
}

/* Returns a new text with the test's folder and port. */
static char *filled(const char *text) {
    char *result = strdup(text), number[16];

    snprintf(number, sizeof(number), "%u", port);
    if (strstr(result, "@FOLDER@"))
        result = replace(result, "@FOLDER@", folder);
    return strstr(result, "@PORT@") ? replace(result, "@PORT@", number) : result;
}

static void write_file(const char *name, const char *text) {
    char path[96];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "we");
    TEST_FATAL(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(path, 0644) == 0, path);
}

static void write_config(const struct proxy *p) {
    char path[64], *shipped, *whole = NULL;
    size_t size;

    snprintf(path, sizeof(path), "web/proxy/%s", p->file);
    TEST_FATAL(file_read(path, 65536, &shipped, &size) == 0, path);
    for (size_t i = 0; i < ELEMENTSOF(p->changes) && p->changes[i].from; i++)
        shipped = replace(shipped, p->changes[i].from, p->changes[i].to);
    TEST_FATAL(asprintf(&whole, "%s%s%s", p->before, shipped, p->after) > 0, "no memory");
    free(shipped);
    shipped = filled(whole);
    write_file("conf", shipped);
    free(shipped);
    free(whole);
    write_file("berth.htpasswd", PASSWORDS);
}

/* Starts it as an ordinary user, and awaits that it listens. */
static void proxy_up(const struct proxy *p, const char *program) {
    char *argv[ELEMENTSOF(p->words) + 2] = {(char *) program}, home[80];
    char *environment[] = {home, NULL};
    struct patience patience = patience_of(HOST_PATIENCE);
    int fd;

    write_config(p);
    snprintf(home, sizeof(home), "HOME=%s", folder);
    for (size_t i = 0; p->words[i]; i++)
        argv[i + 1] = filled(p->words[i]);
    running = geteuid() == 0 ? child_start_as_nobody(argv, environment) : child_start(argv, environment);
    for (size_t i = 0; p->words[i]; i++)
        free(argv[i + 1]);
    while ((fd = web_connect(port)) < 0)
        if (running->ended || !patience_turn(&patience))
            TEST_ABORT("%s does not listen: %s", p->name, child_text(running, 2));
    close_fd(fd);
}

/* Its processes end by its own SIGTERM; a killed one would leave some. */
static void proxy_down(void) {
    if (!running)
        return;
    child_kill(running, SIGTERM);
    CU_ASSERT(child_await(running, HOST_PATIENCE));
    running = child_free(running);
}

/* --- what it passes on --- */

static const char *headers(const char *user, const char *more) {
    static char text[512];

    snprintf(text, sizeof(text), "Host: " WEB_SITE ":%u\r\nOrigin: http://" WEB_SITE ":%u\r\n%s%s", port, port, user, more);
    return text;
}

static unsigned ask(const char *method, const char *path, const char *lines, const char *pool, const char **ret) {
    char body[128] = "";

    if (pool)
        snprintf(body, sizeof(body), "{\"method\":\"io.berth.Pause\",\"parameters\":{\"pool\":\"%s\"}}", pool);
    return web_ask(web_connect(port), method, path, lines, body, ret);
}

static void check_page(const struct proxy *p) {
    const char *answer;

    TEST_INT(ask("GET", "/", headers("", ""), NULL, &answer), 401);
    TEST_INT(ask("GET", "/", headers(USER, ""), NULL, &answer), 200);
    CU_ASSERT(strstr(answer, "<title>") && strstr(answer, "Content-Security-Policy: default-src 'none'"));
    TEST_INT(ask("GET", "/api/1/pools/db", headers(USER, ""), NULL, &answer), 200);
    CU_ASSERT(strstr(answer, "\"limit\":4") != NULL);
    TEST_INT(ask("GET", "/api/1/pools/db", "Host: evil.example\r\nX-Forwarded-Host: " WEB_SITE "\r\n" USER, NULL, &answer), p->unknown_host);
    CU_ASSERT(!strstr(answer, "\"limit\""));
}

/* Who acts is who gave the password, whatever the browser says. */
static void check_actions(void) {
    static const struct {
        const char *user, *more;
        unsigned status;
    } asked[] = {
        {USER, "", 200},
        {USER, "X-Remote-User: mallory\r\n", 200},
        {USER, "x-remote-user: mallory\r\nX-REMOTE-USER: mallory\r\n", 200},
        {USER, "X_Remote_User: mallory\r\n", 200},
        {"", "X-Remote-User: mallory\r\n", 401},
        {USER, "Sec-Fetch-Site: cross-site\r\n", 403},
    };
    unsigned n = 0;
    const char *answer;

    host_mark(ant);
    for (size_t i = 0; i < ELEMENTSOF(asked); i++) {
        char more[256];
        unsigned status;

        snprintf(more, sizeof(more), JSON "%s", asked[i].more);
        status = ask("POST", "/api/1/do", headers(asked[i].user, more), "db", &answer);
        if (status != asked[i].status)
            fprintf(stderr, "%s%s: %u, not %u: %.300s\n", asked[i].user, asked[i].more, status, asked[i].status, answer);
        CU_ASSERT(status == asked[i].status);
        TEST_INT(host_pool(ant, "db", "limit"), status == 200 ? 0 : 4);
        TEST_INT(berth(ant, "resume db"), 0);
        n += asked[i].status == 200;
    }
    host_await_count(ant, n, "operated", "on_behalf=alice");
    TEST_INT(host_count(ant, "operated", "on_behalf=mallory"), 0);
}

/* A browser that has a proxy drop the user's header before berth-web is nobody: it does not become another one. */
static void check_dropped_header(void) {
    char text[1024];
    const char *answer;
    unsigned status;

    snprintf(text, sizeof(text), "POST /api/1/do HTTP/1.1\r\nConnection: close, X-Remote-User\r\nX-Remote-User: mallory\r\n%sContent-Length: 2\r\n\r\n{}",
             headers(USER, JSON));
    status = web_send(web_connect(port), text, &answer); /* 400: alice asks for nothing */
    if (status != 400)
        TEST_INT(status, 401);
}

struct stream {
    int fd;
    size_t size;
    char text[64 * 1024]; /* so far */
};

static void stream_open(struct stream *s, unsigned to, const char *lines) {
    char call[512];

    *s = (struct stream) {.fd = web_connect(to)};
    snprintf(call, sizeof(call), "GET /api/1/stream HTTP/1.1\r\n%s\r\n", lines);
    CU_ASSERT(s->fd >= 0 && send(s->fd, call, strlen(call), MSG_NOSIGNAL) == (ssize_t) strlen(call));
}

/* Reads until this text has come n times. Returns whether it came in time. */
static bool stream_await(struct stream *s, const char *text, unsigned n, usec_t within) {
    usec_t until = clock_boottime() + within, now;

    for (;;) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        unsigned n_seen = 0;
        ssize_t size;

        for (const char *at = strstr(s->text, text); at; at = strstr(at + 1, text))
            n_seen++;
        if (n_seen >= n)
            return true;
        now = clock_boottime();
        if (now >= until || poll(&p, 1, (int) ((until - now) / USEC_PER_MSEC) + 1) <= 0)
            return false;
        size = recv(s->fd, s->text + s->size, sizeof(s->text) - 1 - s->size, 0);
        if (size <= 0)
            return false;
        s->size += (size_t) size;
    }
}

/* An event comes when it comes to a browser without a proxy, and the stream goes on. */
static void check_stream(const struct proxy *p) {
    static struct stream direct, passed;
    char over[64]; /* the end of the last event */
    usec_t seen;

    stream_open(&direct, web.port, "Host: localhost\r\n");
    stream_open(&passed, port, headers(USER, ""));
    CU_ASSERT(stream_await(&direct, "event: overview", 1, HOST_PATIENCE));
    CU_ASSERT(stream_await(&passed, "event: overview", 1, HOST_PATIENCE));
    snprintf(over, sizeof(over), "the permits of by-%s are free", p->program);
    TEST_INT(berth(ant, "run -p db --name by-%s -- true", p->program), 0);
    CU_ASSERT(stream_await(&direct, over, 1, HOST_PATIENCE));
    seen = clock_boottime();
    CU_ASSERT(stream_await(&passed, over, 1, DELAY_MAX));
    printf("%s: an event came %u ms after it came without a proxy\n", p->name, (unsigned) ((clock_boottime() - seen) / USEC_PER_MSEC));
    CU_ASSERT(stream_await(&passed, "\nid: ", 4, HOST_PATIENCE));
    close_fd(direct.fd);
    close_fd(passed.fd);
}

static void check(const struct proxy *p) {
    const char *const places[] = {"/usr/sbin", "/usr/bin"}; /* an ordinary user's PATH does not have the first */
    char program[64], why[128];

    for (size_t i = 0; i < ELEMENTSOF(places); i++) {
        snprintf(program, sizeof(program), "%s/%s", places[i], p->program);
        if (access(program, X_OK) == 0)
            break;
    }
    snprintf(why, sizeof(why), "%s is not installed (.ci/run full installs it)", p->program);
    if (access(program, X_OK) != 0)
        TEST_SKIP(why);
    port = port_reserve();
    snprintf(folder, sizeof(folder), "%s/%s", cluster.folder, p->program);
    TEST_FATAL(mkdir(folder, 0755) == 0 && chmod(folder, 0755) == 0, folder);
    if (geteuid() == 0)
        TEST_FATAL(chown(folder, NOBODY, NOBODY) == 0 && chown(web.unix_path, NOBODY, NOBODY) == 0, "chown");
    snprintf(why, sizeof(why), "%s/web.sock", folder);
    TEST_FATAL(symlink(web.unix_path, why) == 0, why);
    proxy_up(p, program);
    check_page(p);
    check_actions();
    check_dropped_header();
    check_stream(p);
}

static void test_nginx(void) {
    check(&proxies[0]);
}

static void test_caddy(void) {
    check(&proxies[1]);
}

static void test_apache(void) {
    check(&proxies[2]);
}

static void set_up(void) {
    cluster_up_without_redis();
    ant = host_add_alone("ant", "pool \"db\" { limit = 4 scope = \"host\" }\n");
    host_start(ant);
    web_up(&web, ant);
}

static void tear_down(void) {
    proxy_down();
    web_down(&web);
    cluster_down();
}

static CU_TestInfo tests[] = {{"nginx", test_nginx}, {"Caddy", test_caddy}, {"Apache", test_apache}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "web behind proxies", .pSetUpFunc = set_up, .pTearDownFunc = tear_down, .pTests = tests});

/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/tls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/harness/port.h"

char *tls_place_path(const struct tls_place *p, const char *file) {
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];

    (void) snprintf(path, sizeof(paths[0]), "%s/%s", p->folder, file);
    return path;
}

static _printf_(2, 3) int run(const struct tls_place *p, const char *format, ...) {
    char words[1024], command[1400];
    va_list ap;

    va_start(ap, format);
    (void) vsnprintf(words, sizeof(words), format, ap);
    va_end(ap);
    (void) snprintf(command, sizeof(command), "cd %s && { %s; } >log 2>&1", p->folder, words);
    return system(command) == 0 ? 0 : -EIO; /* the words are the test's own */
}

#define NEW_KEY "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"

int tls_place_make_ca(struct tls_place *p, const char *name, const char *common_name) {
    return run(p, "openssl req -x509 " NEW_KEY " -keyout %s.key -out %s.crt -subj '/CN=%s' -days 30", name,
               name, common_name);
}

/* Formats a date as `openssl ca` does. */
static const char *format_date(int days, char text[static 24]) {
    time_t at = time(NULL) + (time_t) days * 86400;
    struct tm tm;

    (void) strftime(text, 24, "%Y%m%d%H%M%SZ", gmtime_r(&at, &tm));
    return text;
}

int tls_place_sign(struct tls_place *p, const char *ca, const char *name, const char *common_name,
                   const char *san, int from, int until) {
    char begin[24], end[24];

    return run(p,
               "printf '%s%s\\n' >ext && : >index && openssl req " NEW_KEY
               " -keyout %s.key -out csr -subj '/CN=%s' && "
               "openssl ca -batch -config ca.conf -in csr -out %s.crt -notext -extfile ext -cert %s.crt "
               "-keyfile %s.key "
               "-startdate %s -enddate %s && chmod 600 %s.key",
               san ? "subjectAltName=" : "", san ? san : "", name, common_name, name, ca, ca,
               format_date(from, begin), format_date(until, end), name);
}

int tls_place_init(struct tls_place *p) {
    int r;

    *p = (struct tls_place){.folder = "/tmp/berth-tls-XXXXXX"};
    if (!mkdtemp(p->folder)) {
        p->folder[0] = '\0';
        return -errno;
    }
    (void) chmod(p->folder, 0755);
    r = run(p,
            "printf "
            "'[ca]\\ndefault_ca=x\\n[x]\\ndatabase=index\\nnew_certs_dir=.\\ndefault_md=sha256\\npolicy=y\\n"
            "unique_subject=no\\nrand_serial=yes\\n[y]\\ncommonName=supplied\\n' >ca.conf");
    return r < 0 ? r : tls_place_make_ca(p, "ca", "lab ca");
}

void tls_place_done(struct tls_place *p) {
    if (p->folder[0])
        (void) run(p, "rm -rf %s", p->folder);
    p->folder[0] = '\0';
}

static struct tls_place shared;
static pid_t shared_by;

static void done_shared(void) {
    if (getpid() == shared_by)
        tls_place_done(&shared);
}

const struct tls_place *tls_shared_place(void) {
    if (shared.folder[0] == '\0') {
        shared_by = getpid();
        if (tls_place_init(&shared) < 0 ||
            tls_place_sign(&shared, "ca", "server", "x", "IP:127.0.0.1", -1, 20) < 0)
            abort();
        (void) atexit(done_shared);
    }
    return &shared;
}

unsigned tls_server_start(struct redis_server *s, const struct tls_place *p, const char *auth_clients) {
    static char ports[8][8];
    static unsigned next;
    char *port = ports[next++ % 8];
    unsigned number = port_reserve();
    const char *extra[] = {"--tls-port",
                           port,
                           "--tls-auth-clients",
                           auth_clients,
                           "--tls-cert-file",
                           strdup(tls_place_path(p, "server.crt")),
                           "--tls-key-file",
                           strdup(tls_place_path(p, "server.key")),
                           "--tls-ca-cert-file",
                           strdup(tls_place_path(p, "ca.crt")),
                           NULL};

    (void) snprintf(port, sizeof(ports[0]), "%u", number);
    return redis_server_start(s, extra) < 0 ? 0 : number; /* which keeps the words */
}

int tls_server_use(struct redis_server *s, const struct tls_place *p, const char *name) {
    _cleanup_reply_ redisReply *reply = redis_command(
        s, "CONFIG SET tls-cert-file %s/%s.crt tls-key-file %s/%s.key", p->folder, name, p->folder, name);

    return reply && reply->type == REDIS_REPLY_STATUS ? 0 : -EIO;
}

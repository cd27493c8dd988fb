/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=fstat,--wrap=fstat64,--wrap=geteuid */

/* The files of a config: which are read, in which order, and which are refused. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/settings.h"
#include "tests/harness/test.h"

#define SOMEBODY 54321

static uid_t pretended_owner = (uid_t) -1, pretended_euid = (uid_t) -1; /* -1: as it is */
static char directory[] = "/tmp/berth-test-load-XXXXXX", config[160];

/* With _FILE_OFFSET_BITS=64, which some libraries' flags bring along, fstat() is fstat64(). */
int __real_fstat(int fd, struct stat *st);
int __real_fstat64(int fd, struct stat *st);
uid_t __real_geteuid(void);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);
uid_t __wrap_geteuid(void);

static int pretend(int r, struct stat *st) {
    if (r == 0 && pretended_owner != (uid_t) -1)
        st->st_uid = pretended_owner;
    return r;
}

int __wrap_fstat(int fd, struct stat *st) {
    return pretend(__real_fstat(fd, st), st);
}
int __wrap_fstat64(int fd, struct stat *st) {
    return pretend(__real_fstat64(fd, st), st);
}
uid_t __wrap_geteuid(void) {
    return pretended_euid != (uid_t) -1 ? pretended_euid : __real_geteuid();
}

/* ---- a folder with a config ---- */

static const char *path(const char *name) {
    static char text[2][128];
    static unsigned next;

    next = !next;
    snprintf(text[next], sizeof(text[next]), "%s/%s", directory, name);
    return text[next];
}

static void write_file(const char *name, const char *text, mode_t mode) {
    _cleanup_fclose_ FILE *f = fopen(path(name), "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    CU_ASSERT(fchmod(fileno(f), mode) == 0);
}

static void set_up(void) {
    static const char template[] = "/tmp/berth-test-load-XXXXXX";

    memcpy(directory, template, sizeof(template));
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
    snprintf(config, sizeof(config), "%s/c", directory);
    write_file("c", "host = a\n", 0600);
    CU_ASSERT(mkdir(path("c.d"), 0755) == 0);
}

static void tear_down(void) {
    static const char *const names[] = {"c.d/10.conf", "c.d/9.conf", "c.d/B.conf", "c.d/a.conf", "c.d/.x.conf", "c.d/x.conf~", "c.d/x",
                                        "c.d/.conf",   "c",          "l"};

    pretended_owner = pretended_euid = (uid_t) -1;
    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        (void) unlink(path(names[i]));
    (void) rmdir(path("c.d/10.conf"));
    (void) unlink(path("c.d"));
    (void) rmdir(path("c.d"));
    CU_ASSERT(rmdir(directory) == 0);
}

static struct settings *loads(const char *file) {
    struct settings_errors errors = {};
    struct settings *s = NULL;

    TEST_INT(settings_load(file, &s, &errors), 0);
    for (size_t i = 0; i < errors.n; i++)
        TEST_STRING(errors.lines[i], "no error");
    settings_errors_done(&errors);
    return s;
}

/* format: as for printf, its arguments all strings. */
static void refuses(const char *format, ...) _printf_(1, 2);
static void refuses(const char *format, ...) {
    struct settings_errors errors = {};
    struct settings *s = NULL;
    char expected[512];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(expected, sizeof(expected), format, arguments);
    va_end(arguments);
    TEST_INT(settings_load(config, &s, &errors), SETTINGS_E_INVALID);
    CU_ASSERT_PTR_NULL(s);
    TEST_INT(errors.n, 1);
    TEST_STRING(errors.n > 0 ? errors.lines[0] : NULL, expected);
    settings_errors_done(&errors);
}

/* ---- what is read ---- */

static void test_order(void) {
    static const char *const expected[] = {"c", "c.d/10.conf", "c.d/9.conf", "c.d/B.conf", "c.d/a.conf"};
    struct settings *s;

    write_file("c.d/a.conf", "pool a { limit = 1 scope = host }", 0644);
    write_file("c.d/B.conf", "pool B { limit = 1 scope = host }", 0444);
    write_file("c.d/9.conf", "", 0600);
    write_file("c.d/10.conf", "#", 0600);
    write_file("c.d/.x.conf", "}", 0600);
    write_file("c.d/.conf", "}", 0600);
    write_file("c.d/x.conf~", "}", 0600);
    write_file("c.d/x", "}", 0600);
    s = loads(config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_STRING(s->host, "a");
    TEST_INT(s->n_pools, 2);
    TEST_INT(s->n_files, ELEMENTSOF(expected));
    for (size_t i = 0; i < ELEMENTSOF(expected) && i < s->n_files; i++)
        TEST_STRING(s->files[i], path(expected[i]));
    settings_free(s);
}

static void test_without_directory(void) {
    struct settings *s;

    CU_ASSERT(rmdir(path("c.d")) == 0);
    s = loads(config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_INT(s->n_files, 1);
    settings_free(s);
}

static void test_link(void) {
    struct settings *s;

    CU_ASSERT(symlink("c", path("l")) == 0);
    s = loads(path("l"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_STRING(s->files[0], path("l"));
    settings_free(s);
}

static void test_errors_name_the_file(void) {
    write_file("c.d/a.conf", "\nhost = b", 0644);
    refuses("%s/c.d/a.conf:2: \"host\" is given twice, first at %s/c:1; keep one", directory, directory);
}

/* ---- what is refused ---- */

static void test_missing(void) {
    CU_ASSERT(unlink(config) == 0);
    refuses("%s: cannot be opened: No such file or directory; create it, or name another one with -c", config);
}

static void test_unreadable(void) {
    bool is_root = getuid() == 0;

    CU_ASSERT(chmod(config, 0) == 0 && chmod(directory, 0755) == 0 && (!is_root || seteuid(SOMEBODY) == 0));
    refuses("%s: cannot be opened: Permission denied; let this user read it, or run this as root", config);
    CU_ASSERT(!is_root || seteuid(0) == 0);
}

static void test_writable(void) {
    CU_ASSERT(chmod(config, 0620) == 0);
    refuses("%s: is writable by group or others; run: chmod go-w %s", config, config);
    CU_ASSERT(chmod(config, 0602) == 0);
    refuses("%s: is writable by group or others; run: chmod go-w %s", config, config);
}

static void test_writable_drop_in(void) {
    write_file("c.d/a.conf", "pool a { limit = 1 scope = host }", 0664);
    refuses("%s/c.d/a.conf: is writable by group or others; run: chmod go-w %s/c.d/a.conf", directory, directory);
}

static void test_writable_directory(void) {
    CU_ASSERT(chmod(path("c.d"), 0777) == 0);
    refuses("%s.d: is writable by group or others; run: chmod go-w %s.d", config, config);
}

static void test_owner(void) {
    struct settings *s;

    pretended_owner = SOMEBODY;
    pretended_euid = 12345;
    CU_ASSERT(rmdir(path("c.d")) == 0);
    refuses("%s: is owned by uid 54321, and must be owned by root or uid 12345; run: chown 12345 %s", config, config);
    pretended_euid = SOMEBODY;
    s = loads(config);
    settings_free(s);
    pretended_owner = 0;
    s = loads(config);
    settings_free(s);
    pretended_owner = SOMEBODY;
    pretended_euid = 0; /* root does not trust a file of another user */
    refuses("%s: is owned by uid 54321, and must be owned by root; run: chown 0 %s", config, config);
}

static void test_kinds(void) {
    CU_ASSERT(mkdir(path("c.d/10.conf"), 0755) == 0);
    refuses("%s/c.d/10.conf: is not a regular file; put a file there", directory);
    CU_ASSERT(rmdir(path("c.d/10.conf")) == 0 && unlink(config) == 0);
    CU_ASSERT(mkfifo(config, 0600) == 0); /* no writer: the load must not hang */
    refuses("%s: is not a regular file; put a file there", config);
}

static void test_directory_is_a_file(void) {
    CU_ASSERT(rmdir(path("c.d")) == 0);
    write_file("c.d", "", 0600);
    refuses("%s.d: is not a directory; put a directory there", config);
}

static void test_size(void) {
    FILE *f = fopen(config, "w");
    struct settings *s;

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (int i = 0; i < 1024 * 1024; i++)
        fputc('\n', f);
    CU_ASSERT(fflush(f) == 0);
    s = loads(config);
    CU_ASSERT_PTR_NOT_NULL(s);
    settings_free(s);
    fputc('\n', f);
    fclose(f);
    refuses("%s: is larger than 1 MiB; split it", config);
}

/* A user who may write to a directory above the config can replace it. */
static void test_parents(void) {
    char nested[128];

    CU_ASSERT(mkdir(path("up"), 0755) == 0 && mkdir(path("up/in"), 0755) == 0);
    write_file("up/in/c", "host = a\n", 0600);
    snprintf(nested, sizeof(nested), "%s/up/in/c", directory);
    settings_free(loads(nested));
    snprintf(config, sizeof(config), "%s", nested);
    CU_ASSERT(chmod(path("up/in"), 0775) == 0);
    refuses("%s: lies below %s/up/in, which is writable by group or others; run: chmod go-w %s/up/in", config, directory, directory);
    CU_ASSERT(chmod(path("up/in"), 0755) == 0 && chmod(path("up"), 0707) == 0);
    refuses("%s: lies below %s/up, which is writable by group or others; run: chmod go-w %s/up", config, directory, directory);
    CU_ASSERT(chmod(path("up"), 01777) == 0);
    settings_free(loads(nested)); /* as /tmp */
    CU_ASSERT(chmod(path("up"), 0777) == 0 && symlink("up/in/c", path("l")) == 0);
    snprintf(config, sizeof(config), "%s/l", directory); /* a link to it changes nothing */
    refuses("%s: lies below %s/up, which is writable by group or others; run: chmod go-w %s/up", config, directory, directory);
    CU_ASSERT(chmod(path("up"), 0755) == 0);
    if (getuid() == 0) {
        CU_ASSERT(chown(path("up"), SOMEBODY, (gid_t) -1) == 0);
        refuses("%s: lies below %s/up, which is owned by uid 54321, and must be owned by root; run: chown 0 %s/up", config, directory,
                directory);
    }
    CU_ASSERT(unlink(path("up/in/c")) == 0 && rmdir(path("up/in")) == 0 && rmdir(path("up")) == 0);
}

/* A path relative to the working directory. */
static void test_relative(void) {
    char before[256];

    CU_ASSERT_FATAL(getcwd(before, sizeof(before)) != NULL && chdir(directory) == 0);
    settings_free(loads("c"));
    settings_free(loads("./c"));
    CU_ASSERT(chdir(before) == 0);
}

static CU_TestInfo tests[] = {
    {"order", test_order},
    {"without-directory", test_without_directory},
    {"link", test_link},
    {"errors-name-the-file", test_errors_name_the_file},
    {"missing", test_missing},
    {"an unreadable file", test_unreadable},
    {"writable", test_writable},
    {"writable-drop-in", test_writable_drop_in},
    {"writable-directory", test_writable_directory},
    {"owner", test_owner},
    {"parents", test_parents},
    {"relative", test_relative},
    {"kinds", test_kinds},
    {"directory-is-a-file", test_directory_is_a_file},
    {"size", test_size},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "load", .pSetUpFunc = set_up, .pTearDownFunc = tear_down, .pTests = tests});

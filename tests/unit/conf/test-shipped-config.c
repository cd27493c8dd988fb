/* SPDX-License-Identifier: MIT */

/* conf/berth.conf and conf/examples/cluster.conf, as they are shipped: they are right, name every option, and say its default. Run from
 * the top of the source tree, as tests/run.sh does. */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "conf/schema.h"
#include "conf/settings.h"
#include "tests/harness/test.h"

static char *read_text(const char *path) {
    _cleanup_fclose_ FILE *f = fopen(path, "r");
    char *text = calloc(1, 65536);

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT(fread(text, 1, 65535, f) > 100);
    return text;
}

static struct settings *parse(const char *text) {
    struct settings_source source = {"berth.conf", text, strlen(text)};
    struct settings_errors errors = {};
    struct settings *s = NULL;

    TEST_INT(settings_parse(&source, 1, "ant", &s, &errors), 0);
    for (size_t i = 0; i < errors.n; i++)
        TEST_STRING(errors.lines[i], "no error");
    settings_errors_done(&errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    return s;
}

/* Makes "#option = ..." and what stands in "#section {" live, as a user does who removes the '#'. */
static void uncomment(char *text) {
    for (char *line = text; *line != '\0'; line++) {
        if (line[0] == '#' && (islower((unsigned char) line[1]) || line[1] == '}' || strncmp(line + 1, "    ", 4) == 0))
            line[0] = ' ';
        line = strchrnul(line, '\n');
        if (*line == '\0')
            break;
    }
}

static void test_as_shipped(void) {
    _cleanup_free_ char *text = read_text("conf/berth.conf");
    _cleanup_(settings_freep) struct settings *s = parse(text);

    CU_ASSERT_PTR_NULL(s->redis);
    TEST_INT(s->n_jobs, 0);
    TEST_INT(s->n_pools, 1);
    TEST_INT(s->pools[0].scope, POOL_SCOPE_HOST);
}

static void test_every_option_is_there(void) {
    _cleanup_free_ char *text = read_text("conf/berth.conf");
    char line[64];

    for (int kind = 0; kind < N_SECTION_KINDS; kind++) {
        const struct schema_section *section = schema_get((enum section_kind) kind);

        for (size_t i = 0; i < section->n_options; i++) {
            snprintf(line, sizeof(line), "\n#%s%s = ", kind == SECTION_TOP ? "" : "    ", section->options[i].name);
            if (!strstr(text, line))
                TEST_STRING("conf/berth.conf does not say", line);
        }
    }
}

/* All that is shown, made live, but the host's name, is the same as all that is required alone. */
static void test_defaults_are_told(void) {
    _cleanup_free_ char *text = read_text("conf/berth.conf");
    _cleanup_(settings_freep) struct settings *shown = NULL, *plain = NULL;
    const struct pool_settings *a, *b;
    char *host;

    uncomment(text);
    host = strstr(text, "host = \"the machine's hostname\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(host);
    host[0] = '#';
    shown = parse(text);
    plain = parse("redis { }\npool \"db\" { limit = 4 }\njob \"pg-dump\" { pools = {\"db:2\"}\n"
                  "command = {\"/usr/bin/pg_dump\", \"-Fc\", \"-f\", \"/backup/app.dump\", \"app\"} }");
    CU_ASSERT_PTR_NULL(settings_find_fixed_change(plain, shown));
    TEST_STRING(settings_find_job(shown, "pg-dump")->hash, settings_find_job(plain, "pg-dump")->hash);
    a = settings_find_pool(shown, "db");
    b = settings_find_pool(plain, "db");
    TEST_INT(a->scope, b->scope);
    TEST_INT(a->limit, b->limit);
    TEST_INT(a->host_limit, b->host_limit);
    TEST_INT(a->queue_limit, b->queue_limit);
    TEST_STRING(a->description, b->description);
    TEST_INT(a->users.n, b->users.n);
    TEST_INT(a->head_start_max_usec, b->head_start_max_usec);
    TEST_STRING(shown->run_group.name, plain->run_group.name);
    TEST_STRING(shown->operate_group.name, plain->operate_group.name);
}

static void test_cluster_example(void) {
    _cleanup_free_ char *text = read_text("conf/examples/cluster.conf");
    _cleanup_(settings_freep) struct settings *s = parse(text);

    TEST_INT(s->n_pools, 2);
    TEST_INT(s->n_jobs, 3);
    CU_ASSERT_PTR_NOT_NULL(s->redis);
}

/* A value above the bound of an option is refused; the error and the man page name the bound. */
static void test_bounds_are_told(void) {
    static const struct {
        const char *config, *option, *bound;
    } rows[] = {
        {"pool \"p\" { scope = host limit = 1000001 }", "*limit* = ", "1000000"},
        {"pool \"p\" { scope = host limit = 1 host-limit = 1000001 }", "*host-limit* = ", "1000000"},
        {"pool \"p\" { scope = host limit = 1 queue-limit = 1000001 }", "*queue-limit* = ", "1000000"},
        {"pool \"p\" { scope = host limit = 2000 } job \"j\" { command = {\"/j\"} pools = {\"p:1001\"} }", "*pools* = ", "1000"},
        {"job \"j\" { command = {\"/j\"} cpu-weight = 10001 }", "*cpu-weight* = ", "10000"},
        {"job \"j\" { command = {\"/j\"} tasks-max = 4194305 }", "*tasks-max* = ", "4194304"},
        {"lease = \"25h\"", "*lease* = ", "1d"},
        {"job \"j\" { command = {\"/j\"} timeout = \"3651d\" }", "# SYNTAX", "3650d"},
        {"job \"j\" { command = {\"/j\"} nice = 20 }", "*nice* = ", "19"},
    };
    _cleanup_free_ char *manual = read_text("packaging/man/berth.conf.5.scd");

    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        struct settings_source source = {"c", rows[i].config, strlen(rows[i].config)};
        struct settings_errors errors = {};
        struct settings *s = NULL;
        const char *option = strstr(manual, rows[i].option), *told = option ? strstr(option, rows[i].bound) : NULL;

        TEST_INT(settings_parse(&source, 1, "ant", &s, &errors), SETTINGS_E_INVALID);
        TEST_INT(errors.n, 1);
        if (errors.n != 1 || !strstr(errors.lines[0], rows[i].bound) || !told || told - option > 1000) {
            printf("%s %s: %s\n", rows[i].option, rows[i].bound, errors.n > 0 ? errors.lines[0] : "no error");
            CU_FAIL("is not told");
        }
        settings_errors_done(&errors);
    }
}

static CU_TestInfo tests[] = {
    {"as-shipped", test_as_shipped},
    {"every-option-is-there", test_every_option_is_there},
    {"defaults-are-told", test_defaults_are_told},
    {"cluster-example", test_cluster_example},
    {"bounds-are-told", test_bounds_are_told},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "shipped-config", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}

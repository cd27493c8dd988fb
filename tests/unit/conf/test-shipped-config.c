/* SPDX-License-Identifier: MIT */

/* conf/berth.conf, the files of conf/examples and berth.conf(5): they are valid, and agree with the table of options. Run from the top of
 * the source tree, as tests/run.sh does. */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/number.h"
#include "conf/types/option-types.h"
#include "tests/harness/host/config.h"
#include "tests/harness/test.h"

static char *read_text(const char *path) {
    _cleanup_fclose_ FILE *f = fopen(path, "r");
    char *text = calloc(1, 65536);

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT(fread(text, 1, 65535, f) > 100);
    return text;
}

/* Uncomments "#option = ..." and the content of "#section {", as a user does. */
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
    _cleanup_(settings_freep) struct settings *s = config_parse(text);

    CU_ASSERT_PTR_NULL(s->redis);
    TEST_INT(s->n_jobs, 0);
    TEST_INT(s->n_pools, 1);
    TEST_INT(s->pools[0].scope, POOL_SCOPE_HOST);
}

/* berth.conf with every option uncommented, except host, has the same settings as a config of the required options alone. */
static void test_shown_values_are_defaults(void) {
    _cleanup_free_ char *text = read_text("conf/berth.conf");
    _cleanup_(settings_freep) struct settings *shown = NULL, *plain = NULL;
    const struct pool_settings *a, *b;
    char *host;

    uncomment(text);
    host = strstr(text, "host = \"the machine's hostname\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(host);
    host[0] = '#';
    shown = config_parse(text);
    plain = config_parse("redis { }\npool \"db\" { limit = 4 }\njob \"pg-dump\" { pools = {\"db:2\"}\n"
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
    _cleanup_(settings_freep) struct settings *s = config_parse(text);

    TEST_INT(settings_count_pools(s), 2);
    TEST_INT(s->n_jobs, 4);
    CU_ASSERT_PTR_NOT_NULL(s->redis);
}

static void test_jobs_example(void) {
    _cleanup_free_ char *text = read_text("conf/examples/jobs.conf");
    _cleanup_(settings_freep) struct settings *s = config_parse(text);

    TEST_INT(s->n_pools, 1);
    TEST_INT(s->n_jobs, 7); /* two of them are instances */
    CU_ASSERT_PTR_NOT_NULL(settings_find_job(s, "copy@orders"));
    CU_ASSERT_PTR_NULL(s->redis);
    TEST_INT(settings_find_job(s, "nightly-dump")->triggers.schedule.n_entries, 1);
}

/* ---- the table of options against the manual and berth.conf ---- */

static const struct {
    const char *begin; /* of the section in the manual */
    const char *config_line;
} documents[] = {
    [SECTION_TOP] = {"# THIS HOST", "\n#"},
    [SECTION_REDIS] = {"*redis { }*", "\n#    "},
    [SECTION_POOL] = {"# POOLS", "\n#    "},
    [SECTION_JOB] = {"# JOBS", "\n#    "},
};

static const char *find(const char *text, const char *before, const char *name, const char *after) {
    char line[64];

    snprintf(line, sizeof(line), "%s%s%s", before, name, after);
    return strstr(text, line);
}

/* The entry of an option in the manual, up to the next entry. */
static char *manual_entry(const char *manual, enum section_kind kind, const char *name) {
    const char *begin = find(strstr(manual, documents[kind].begin), "*", name, "* = "), *end;

    if (!begin)
        return NULL;
    end = begin;
    do
        end = strchrnul(end + 1, '\n');
    while (*end != '\0' && end[strspn(end, "\n\t")] != '*' && end[strspn(end, "\n\t")] != '#');
    return strndup(begin, (size_t) (end - begin));
}

/* The value at `text`, without quotes and the manual's underscores. */
static void get_value(const char *text, char ret[static 64]) {
    text += strspn(text, "_\"");
    snprintf(ret, 64, "%.*s", (int) strcspn(text, "_\",\n"), text);
}

static void expect_default(const char *where, const struct option *option, const char *text, const char *expected) {
    char value[64];

    get_value(text, value);
    if (strcmp(value, expected) != 0) {
        printf("%s: %s is \"%s\", the default is \"%s\"\n", where, option->name, value, expected);
        CU_FAIL("a default is documented wrongly");
    }
}

/* Defaults that depend on other options, with those options at their defaults. NULL: required. */
static const char *computed_default(const struct option *option) {
    static const char *const rows[][2] = {{"heartbeat", "5s"}, {"stop-timeout", "5s"}, {"timeout", "2500ms"}, {"state-directory", "/var/lib/berth"}};

    for (size_t i = 0; i < ELEMENTSOF(rows); i++)
        if (strcmp(rows[i][0], option->name) == 0)
            return rows[i][1];
    return NULL;
}

static void test_defaults_are_documented(void) {
    _cleanup_free_ char *manual = read_text("packaging/man/berth.conf.5.scd"), *config = read_text("conf/berth.conf");

    for (int kind = 0; kind < N_SECTION_KINDS; kind++)
        for (size_t i = 0; i < section_get((enum section_kind) kind)->n_options; i++) {
            const struct option *option = &section_get((enum section_kind) kind)->options[i];
            const char *expected = option->text ? option->text : computed_default(option), *shown;
            _cleanup_free_ char *entry = manual_entry(manual, (enum section_kind) kind, option->name);

            shown = find(config, "\n#", section_get((enum section_kind) kind)->name, "");
            shown = shown ? find(shown, documents[kind].config_line, option->name, " = ") : NULL;
            if (!entry || !shown) {
                TEST_STRING(option->name, "an option of the manual and of berth.conf");
                continue;
            }
            if (!expected || option_is_list(option))
                continue;
            expect_default("manual", option, find(entry, "*", option->name, "* = ") + strlen(option->name) + 5, expected);
            expect_default("berth.conf", option, strchr(shown, '=') + 2, expected);
        }
}

/* A bound as the manual has it, or "" if the manual need not name it. */
static const char *format_bound(const struct option *option, int64_t bound, char buffer[static DURATION_TEXT_SIZE]) {
    bool is_duration = option->type == &option_duration, is_size = option->type == &option_size;

    buffer[0] = '\0';
    if (bound == 0 || bound == 1 || bound == (is_duration ? OPTION_DURATION_MAX : INT64_MAX))
        return buffer;
    if (is_duration)
        return duration_format((usec_t) bound, buffer);
    if (is_size)
        return size_format((uint64_t) bound, buffer);
    snprintf(buffer, DURATION_TEXT_SIZE, option->type == &option_umask ? "%" PRIo64 : "%" PRId64, bound);
    return buffer;
}

static bool has_word(const char *text, const char *word) {
    size_t n = strlen(word);

    for (const char *at = text ? strstr(text, word) : NULL; at; at = strstr(at + 1, word))
        if ((at == text || !isalnum((unsigned char) at[-1])) && !isalnum((unsigned char) at[n]))
            return true;
    return n == 0;
}

static void test_ranges_are_documented(void) {
    _cleanup_free_ char *manual = read_text("packaging/man/berth.conf.5.scd");
    char bound[DURATION_TEXT_SIZE];

    CU_ASSERT(has_word(strstr(manual, "# SYNTAX"), duration_format(OPTION_DURATION_MAX, bound)));
    for (int kind = 0; kind < N_SECTION_KINDS; kind++)
        for (size_t i = 0; i < section_get((enum section_kind) kind)->n_options; i++) {
            const struct option *option = &section_get((enum section_kind) kind)->options[i];
            _cleanup_free_ char *entry = manual_entry(manual, (enum section_kind) kind, option->name);

            CU_ASSERT_PTR_NOT_NULL_FATAL(entry);
            for (int k = 0; k < 2; k++)
                if (!has_word(entry, format_bound(option, k == 0 ? option->min : option->max, bound))) {
                    printf("the manual does not name the bound %s of %s\n", bound, option->name);
                    CU_FAIL("a bound is not documented");
                }
        }
}

/* Outside of sections and in the redis section, an option that is hashed needs a restart. */
static void test_restarts_are_documented(void) {
    _cleanup_free_ char *manual = read_text("packaging/man/berth.conf.5.scd");
    const struct section *top = section_get(SECTION_TOP);

    for (size_t i = 0; i < top->n_options; i++) {
        _cleanup_free_ char *entry = manual_entry(manual, SECTION_TOP, top->options[i].name);

        if ((top->options[i].hash == HASH) != (entry && strstr(entry, "[restart]")))
            TEST_STRING(top->options[i].name, "marked [restart], or not, as it should be");
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(strstr(manual, "*redis { }*"), "[restart]"));
}

static CU_TestInfo tests[] = {
    {"as-shipped", test_as_shipped},
    {"shown-values-are-defaults", test_shown_values_are_defaults},
    {"cluster-example", test_cluster_example},
    {"jobs-example", test_jobs_example},
    {"defaults-are-documented", test_defaults_are_documented},
    {"ranges-are-documented", test_ranges_are_documented},
    {"restarts-are-documented", test_restarts_are_documented},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "shipped-config", .pTests = tests});

/* SPDX-License-Identifier: MIT */

/* Metrics as text: both formats, histograms, what is escaped, numbers. */

#include "base/client/metrics-text.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "tests/harness/test.h"

/* JSON with ' for ". */
static char *print(const char *json, bool is_openmetrics) {
    _cleanup_free_ char *quoted = strdup(json);
    json_t *metrics;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    for (char *at = quoted; *at; at++)
        if (*at == '\'')
            *at = '"';
    metrics = json_loads(quoted, 0, NULL);
    metrics_print(f, metrics, is_openmetrics);
    (void) fclose(f);
    json_decref(metrics);
    return text;
}

static void prints(const char *json, bool is_openmetrics, const char *expected) {
    _cleanup_free_ char *text = print(json, is_openmetrics);
    const char *rest = strchr(strstr(text, "\nberth_up ") + 1, '\n') + 1;

    TEST_STRING(rest, expected);
}

static void test_gauge(void) {
    prints("{'berth_drained': [{'labels': {}, 'value': 1}], 'berth_lease_seconds': [{'labels': {}, 'value': "
           "2.5}]}",
           false,
           "# HELP berth_drained 1: this host begins no runs.\n# TYPE berth_drained gauge\nberth_drained 1\n"
           "# HELP berth_lease_seconds The lease of the config.\n# TYPE berth_lease_seconds "
           "gauge\nberth_lease_seconds 2.5\n");
    prints("{'berth_lease_seconds': [{'labels': {}, 'value': 1800000000.123456}]}", true,
           "# HELP berth_lease_seconds The lease of the config.\n# TYPE berth_lease_seconds gauge\n# UNIT "
           "berth_lease_seconds seconds\n"
           "berth_lease_seconds 1800000000.123456\n# EOF\n");
    prints("{'berth_drained': [], 'berth_unknown': [{'labels': {}, 'value': 1}]}", false, "");
}

static void test_up(void) {
    _cleanup_free_ char *here = print("{}", false), *away = print("null", true);

    TEST_STRING(strstr(here, "\nberth_up"), "\nberth_up 1\n");
    TEST_STRING(strstr(away, "\nberth_up 0"), "\nberth_up 0\n# EOF\n");
}

/* OpenMetrics: the family of a counter has no "_total". */
static void test_counter(void) {
    const char *json = "{'berth_fenced_total': [{'labels': {}, 'value': 12345678901}]}";

    prints(json, false,
           "# HELP berth_fenced_total Events fenced.\n# TYPE berth_fenced_total counter\nberth_fenced_total "
           "12345678901\n");
    prints(json, true,
           "# HELP berth_fenced Events fenced.\n# TYPE berth_fenced counter\nberth_fenced_total "
           "12345678901\n# EOF\n");
}

static void test_labels(void) {
    prints("{'berth_pool_permits_used': [{'labels': {'pool': 'a\\\\b\\u0022c\\nd', 'scope': 'host'}, "
           "'value': 0},"
           " {'labels': {'pool': '', 'scope': 7}, 'value': 3}]}",
           false,
           "# HELP berth_pool_permits_used Permits that are held.\n# TYPE berth_pool_permits_used gauge\n"
           "berth_pool_permits_used{pool=\"a\\\\b\\\"c\\nd\",scope=\"host\"} 0\n"
           "berth_pool_permits_used{pool=\"\",scope=\"\"} 3\n");
}

#define HELP                                                                                                \
    "# HELP berth_wait_seconds How long runs of this host waited for permits of the pool that they were granted.\n"

/* Buckets are cumulative. */
static void test_histogram(void) {
    const char *json = "{'berth_wait_seconds': [{'labels': {'pool': 'db'}, 'bounds': [0.5, 1, 86400], "
                       "'counts': [2, 0, 3, 1],"
                       " 'sum': 99.25}]}";

    prints(json, false,
           HELP "# TYPE berth_wait_seconds histogram\n"
                "berth_wait_seconds_bucket{pool=\"db\",le=\"0.5\"} "
                "2\nberth_wait_seconds_bucket{pool=\"db\",le=\"1\"} 2\n"
                "berth_wait_seconds_bucket{pool=\"db\",le=\"86400\"} "
                "5\nberth_wait_seconds_bucket{pool=\"db\",le=\"+Inf\"} 6\n"
                "berth_wait_seconds_sum{pool=\"db\"} 99.25\nberth_wait_seconds_count{pool=\"db\"} 6\n");
    prints(json, true,
           HELP
           "# TYPE berth_wait_seconds histogram\n# UNIT berth_wait_seconds seconds\n"
           "berth_wait_seconds_bucket{pool=\"db\",le=\"0.5\"} "
           "2\nberth_wait_seconds_bucket{pool=\"db\",le=\"1.0\"} 2\n"
           "berth_wait_seconds_bucket{pool=\"db\",le=\"86400.0\"} "
           "5\nberth_wait_seconds_bucket{pool=\"db\",le=\"+Inf\"} 6\n"
           "berth_wait_seconds_sum{pool=\"db\"} 99.25\nberth_wait_seconds_count{pool=\"db\"} 6\n# EOF\n");
}

/* Malformed metrics of another program add neither a label nor a line. */
static void test_liar(void) {
    prints(
        "{'berth_drained': [{'labels': {'run': 'x', 'a\\u0022} 1\\nb': 'y'}, 'value': 1}, {'value': "
        "'many'}, 7, {}]}",
        false,
        "# HELP berth_drained 1: this host begins no runs.\n# TYPE berth_drained gauge\nberth_drained 1\n");
    prints("{'berth_host_claims': [{'labels': [], 'value': 2}], 'berth_up': [{'labels': {}, 'value': 7}], "
           "'berth_drained': {'value': 1}, 'berth_runs': 'many'}",
           false,
           "# HELP berth_host_claims Claims of the 100 hosts with the most claims (--cluster).\n"
           "# TYPE berth_host_claims gauge\nberth_host_claims{host=\"\"} 2\n");
    prints(
        "{'berth_wait_seconds': [{'bounds': [1], 'counts': [1], 'sum': 1}, {'bounds': 'x', 'sum': 1}, 'x']}",
        false, HELP "# TYPE berth_wait_seconds histogram\n");
}

/* Names follow the rules of promtool, and no label has a value for each run. */
static void test_table(void) {
    static const char *const endless[] = {"run", "claim", "token", "pid", "uid", "user", "label", "ticket"};

    for (enum metric i = 0; i < METRICS; i++) {
        const struct metric_row *row = metric_get(i);
        size_t n = strlen(row->name), n_help = strlen(row->help);
        bool is_total = n > 6 && strcmp(row->name + n - 6, "_total") == 0;
        _cleanup_free_ char *labels = strdup(row->labels);
        char *rest = labels, *label;

        CU_ASSERT(strncmp(row->name, "berth_", 6) == 0 &&
                  strspn(row->name, "abcdefghijklmnopqrstuvwxyz_") == n);
        TEST_INT(is_total, row->type == METRIC_COUNTER);
        CU_ASSERT(n_help > 0 && row->help[n_help - 1] == '.');
        for (enum metric j = 0; j < i; j++)
            CU_ASSERT(strcmp(row->name, metric_get(j)->name) != 0);
        while ((label = strsep(&rest, ",")))
            for (size_t j = 0; j < sizeof(endless) / sizeof(*endless); j++)
                CU_ASSERT(strcmp(label, endless[j]) != 0);
    }
}

static CU_TestInfo tests[] = {
    {"gauges and numbers", test_gauge},
    {"berth_up", test_up},
    {"counters", test_counter},
    {"labels are escaped", test_labels},
    {"histograms are cumulative", test_histogram},
    {"a berthd that lies", test_liar},
    {"the table", test_table},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "metrics-text", .pTests = tests});

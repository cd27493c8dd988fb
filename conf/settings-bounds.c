/* SPDX-License-Identifier: MIT */

/* What a job's command may use: limits of setrlimit(2), priorities, bounds of its cgroup. */

#include <string.h>
#include <sys/resource.h>

#include "base/nearest.h"
#include "base/number.h"
#include "conf/settings-read.h"

#define CPU_WEIGHT_MAX 10000   /* Linux: admin-guide/cgroup-v2.rst, cpu.weight */
#define TASKS_MAX_MAX 4194304  /* PID_MAX_LIMIT of Linux */

static const struct resource {
    const char *name;
    int resource;
    bool is_size;              /* bytes */
    bool is_bounded;           /* the kernel takes no RLIM_INFINITY */
} resources[] = {
    {"as", RLIMIT_AS, true, false},           {"core", RLIMIT_CORE, true, false},         {"cpu", RLIMIT_CPU, false, false},
    {"data", RLIMIT_DATA, true, false},       {"fsize", RLIMIT_FSIZE, true, false},       {"locks", RLIMIT_LOCKS, false, false},
    {"memlock", RLIMIT_MEMLOCK, true, false}, {"msgqueue", RLIMIT_MSGQUEUE, true, false}, {"nice", RLIMIT_NICE, false, false},
    {"nofile", RLIMIT_NOFILE, false, true},   {"nproc", RLIMIT_NPROC, false, false},      {"rss", RLIMIT_RSS, true, false},
    {"rtprio", RLIMIT_RTPRIO, false, false},  {"rttime", RLIMIT_RTTIME, false, false},    {"sigpending", RLIMIT_SIGPENDING, false, false},
    {"stack", RLIMIT_STACK, true, false},
};

static const struct resource *find_resource(const char *name, size_t n) {
    for (size_t i = 0; i < ELEMENTSOF(resources); i++)
        if (strlen(resources[i].name) == n && memcmp(resources[i].name, name, n) == 0)
            return &resources[i];
    return NULL;
}

static void note_unknown(const struct value_reader *r, size_t index, const char *name, size_t n_name) {
    const char *names[ELEMENTSOF(resources)], *near;
    char written[32], known[256];
    size_t n = 0;

    snprintf(written, sizeof(written), "%.*s", (int) (n_name < sizeof(written) ? n_name : 0), name);
    for (size_t i = 0; i < ELEMENTSOF(resources); i++) {
        names[i] = resources[i].name;
        n += (size_t) snprintf(known + n, sizeof(known) - n, "%s%s", i > 0 ? ", " : "", names[i]); /* they fit */
    }
    near = nearest(written, names, ELEMENTSOF(names));
    value_error(r, JOB_LIMITS, index, "is no limit of setrlimit(2); %s%s%s", near ? "did you mean \"" : "there are ", near ? near : known,
                near ? "\"?" : "");
}

/* 0 or a negative errno. */
static int parse_amount(const struct resource *resource, const char *text, uint64_t *ret) {
    if (strcmp(text, "unlimited") == 0 && !resource->is_bounded) {
        *ret = RLIM_INFINITY;
        return 0;
    }
    if (resource->is_size)
        return size_parse(text, ret);
    return number_parse(text, INT64_MAX, ret);
}

static void read_limit(struct job_settings *job, const struct value_reader *r, size_t index) {
    const char *text = value_get(r, JOB_LIMITS, index, false);
    size_t n = text ? strcspn(text, "=") : 0;
    const struct resource *resource;
    uint64_t value;

    if (!text)
        return;
    resource = find_resource(text, n);
    if (n == 0 || text[n] == '\0')
        value_error(r, JOB_LIMITS, index, "must be NAME=VALUE, such as \"nofile=1024\" or \"core=0\"");
    else if (!resource)
        note_unknown(r, index, text, n);
    else if (parse_amount(resource, text + n + 1, &value) < 0 || (value > INT64_MAX && value != RLIM_INFINITY) ||
             (value == RLIM_INFINITY && strcmp(text + n + 1, "unlimited") != 0))
        value_error(r, JOB_LIMITS, index, "must be %s%s", resource->is_size ? "a size such as \"64M\" or \"2G\"" : "a decimal number",
                    resource->is_bounded ? "; the kernel knows no unlimited nofile" : ", or unlimited");
    else
        job->limits[job->n_limits++] = (struct job_limit) {resource->resource, value};
}

/* Whether an earlier value of the list has the same name; then it is noted. */
static bool is_twice(const struct value_reader *r, size_t index) {
    const struct parsed_value *values = r->section->options[JOB_LIMITS].values;
    size_t n = strcspn(values[index].text, "=");

    if (!find_resource(values[index].text, n))
        return false;
    for (size_t i = 0; i < index; i++)
        if (strncmp(values[i].text, values[index].text, n) == 0 && values[i].text[n] == '=') {
            value_error(r, JOB_LIMITS, index, "is the second of this name, the first is in line %d; keep one", values[i].line);
            return true;
        }
    return false;
}

static int compare(const void *a, const void *b) {
    const struct job_limit *x = a, *y = b;

    return x->resource - y->resource;
}

static void read_limits(struct job_settings *job, const struct value_reader *r) {
    size_t n = r->section->options[JOB_LIMITS].n_values;

    if (n == 0)
        return;
    job->limits = calloc(n, sizeof(*job->limits));
    if (!job->limits) {
        r->notes->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (!is_twice(r, i))
            read_limit(job, r, i);
    qsort(job->limits, job->n_limits, sizeof(*job->limits), compare);
}

void settings_read_bounds(struct job_settings *job, const struct value_reader *r) {
    job->nice = job->oom_score_adjust = JOB_INHERIT;
    read_limits(job, r);
    value_optional_integer(r, JOB_NICE, -20, 19, &job->nice);
    value_optional_integer(r, JOB_OOM_SCORE_ADJUST, -1000, 1000, &job->oom_score_adjust);
    value_bool(r, JOB_NO_NEW_PRIVILEGES, &job->no_new_privileges);
    value_optional_size(r, JOB_MEMORY_MAX, &job->memory_max);
    value_optional_number(r, JOB_CPU_WEIGHT, CPU_WEIGHT_MAX, &job->cpu_weight);
    value_optional_number(r, JOB_TASKS_MAX, TASKS_MAX_MAX, &job->tasks_max);
}

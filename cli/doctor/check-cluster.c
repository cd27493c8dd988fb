/* SPDX-License-Identifier: MIT */
/* Checks of the hosts: limits, versions, silence, drain. */
#include <string.h>

#include "base/json/format.h"
#include "base/silence.h"
#include "cli/doctor/doctor.h"

#define INT "%" JSON_INTEGER_FORMAT
#define LIST_SIZE 256

/* Appends ", TEXT" as far as there is room. */
static void append(char list[static LIST_SIZE], const char *text) {
    size_t n = strlen(list);

    (void) snprintf(list + n, LIST_SIZE - n, "%s%s", n > 0 ? ", " : "", text);
}

/* --- limits --- */

/* "cow 3, dog 4": hosts that declare another limit than the one in force. */
static void list_limits(const struct facts *f, const char *pool, char list[static LIST_SIZE]) {
    const json_t *hosts = json_object_get(f->hosts, "hosts");
    json_t *host, *limit;
    size_t i, k;

    list[0] = '\0';
    json_array_foreach (hosts, i, host)
        json_array_foreach (json_object_get(host, "limits"), k, limit) {
            char one[NAME_MAX_LENGTH + 32];

            if (strcmp(format_get_text(limit, "pool"), pool) != 0)
                continue;
            (void) snprintf(one, sizeof(one), "%.64s " INT, format_get_text(host, "host"),
                            format_get_number(limit, "limit"));
            append(list, one);
        }
}

void doctor_limits_differ(const struct facts *f, struct report *r) {
    const json_t *pools = json_object_get(f->pools, "pools");
    json_t *pool;
    size_t i;

    json_array_foreach (pools, i, pool) {
        const json_t *lowest = json_object_get(pool, "lowest");
        const char *name = format_get_text(pool, "name");
        char list[LIST_SIZE];

        if (!json_is_true(json_object_get(pool, "limits_differ")))
            continue;
        list_limits(f, name, list);
        report_add(r, SEVERITY_WARN, "%s: hosts declare different limits; " INT " is in force%s%s%s%s", name,
                   format_get_number(pool, "limit"), *format_get_text(lowest, "host") ? ", as on " : "",
                   format_get_text(lowest, "host"), *list ? "; others: " : "", list);
        report_about(r, NULL, name, NULL);
        report_do(r, "make the configs agree, then on each host:");
        report_command(r, "berth", "reload");
    }
}

static void add_pools(const struct facts *f, const json_t *names, const char *without, const char *with,
                      const char *host, struct report *r) {
    char list[LIST_SIZE] = "";
    json_t *name;
    size_t i;

    json_array_foreach (names, i, name)
        append(list, json_string_value(name));
    if (!*list)
        return;
    report_add(r, SEVERITY_NOTE, "%s does not define pools of %s: %s", without, with, list);
    report_about(r, host, NULL, NULL);
    report_do(r, "if these hosts are to run the same jobs, make the configs agree, then on %s:",
              strcmp(without, facts_host(f)) == 0 ? "this host" : without);
    report_command(r, "berth", "reload");
}

void doctor_pools_differ(const struct facts *f, struct report *r) {
    json_t *host;
    size_t i;

    json_array_foreach (json_object_get(f->hosts, "hosts"), i, host) {
        const char *name = format_get_text(host, "host"), *own = facts_host(f);

        add_pools(f, json_object_get(host, "pools_only_there"), own, name, name, r);
        add_pools(f, json_object_get(host, "pools_only_here"), name, own, name, r);
    }
}

/* --- jobs that hosts share --- */

void doctor_jobs_differ(const struct facts *f, struct report *r) {
    json_t *host, *job;
    size_t i, k;

    json_array_foreach (json_object_get(f->hosts, "hosts"), i, host)
        json_array_foreach (json_object_get(host, "jobs_differ"), k, job) {
            const char *name = format_get_text(host, "host");

            report_add(r, SEVERITY_WARN,
                       "%s: %s defines other due times than %s; the due times of both are decided",
                       json_string_value(job), name, facts_host(f));
            report_about(r, name, NULL, NULL);
            report_do(r, "make schedule, every, except, zone and splay agree, then on each host:");
            report_command(r, "berth", "reload");
        }
}

static bool is_of_no_host(const json_t *item) {
    const json_t *hosts = json_object_get(item, "hosts");

    return json_is_array(hosts) && json_array_size(hosts) == 0;
}

void doctor_open_turns(const struct facts *f, struct report *r) {
    const char *last = "";
    json_t *item;
    size_t i;

    json_array_foreach (json_object_get(f->next, "next"), i, item) {
        const char *job = format_get_text(item, "job");
        json_int_t attempt = format_get_number(item, "attempt");

        if (!is_of_no_host(item) || strcmp(job, last) == 0)
            continue;
        last = job;
        if (attempt > 0)
            report_add(r, SEVERITY_WARN, "%s: attempt " INT " is open, and every host that defines the job is drained", job, attempt);
        else
            report_add(r, SEVERITY_WARN, "%s: no host takes its due times: every host that defines the job is drained", job);
        report_do(r, "on a host that may begin it:");
        report_command(r, "berth", "undrain");
    }
}

/* --- versions --- */

void doctor_version_skew(const struct facts *f, struct report *r) {
    const char *own = format_get_text(f->version, "version");
    const json_t *hosts = json_object_get(f->hosts, "hosts");
    char list[LIST_SIZE] = "";
    json_t *host;
    size_t i;

    if (strcmp(own, VERSION) != 0) {
        report_add(r, SEVERITY_NOTE, "berthd is %s and berth is " VERSION, own);
        report_do(r, "berthd was not restarted after the upgrade; a restart leaves runs alone:");
        report_command(r, "systemctl", "restart", "berthd");
    }
    json_array_foreach (hosts, i, host) {
        char one[NAME_MAX_LENGTH + 64];

        if (strcmp(format_get_text(host, "version"), own) == 0)
            continue;
        (void) snprintf(one, sizeof(one), "%.64s %.48s", format_get_text(host, "host"),
                        format_get_text(host, "version"));
        append(list, one);
    }
    if (!*list)
        return;
    report_add(r, SEVERITY_NOTE, "hosts run other versions than %s: %s", own, list);
    report_do(r, "finish the upgrade");
}

/* --- hosts --- */

void doctor_hosts_silent(const struct facts *f, struct report *r) {
    json_int_t bound = (json_int_t) silence_bound((uint64_t) format_get_number(f->redis, "lease_ms"),
                                                  (uint64_t) format_get_number(f->redis, "heartbeat_ms"));
    const json_t *hosts = json_object_get(f->hosts, "hosts");
    json_t *host;
    size_t i;

    json_array_foreach (hosts, i, host) {
        json_int_t seen = format_get_number(host, "seen_ms");
        const char *name = format_get_text(host, "host");
        char text[FORMAT_SIZE];

        if (bound == 0 || seen <= bound)
            continue;
        report_add(r, SEVERITY_WARN, "%s: not seen for %s", name,
                   format_msec(seen, text));
        report_about(r, name, NULL, NULL);
        report_measure(r, (double) seen / 1000, (double) bound / 1000);
        report_do(r, "its permits are freed after a lease; check whether it runs and reaches Redis:");
        report_command(r, "ssh", name, "systemctl", "status", "berthd");
    }
}

/* Two machines with one machine id may have one name, because Redis takes the second one for the first one after a restart. A
 * host that has crashed and come back is there twice until its old session expires, and silent in that one. */
void doctor_hosts_twice(const struct facts *f, struct report *r) {
    json_int_t bound = (json_int_t) silence_bound((uint64_t) format_get_number(f->redis, "lease_ms"),
                                                  (uint64_t) format_get_number(f->redis, "heartbeat_ms"));
    json_t *names = json_object();
    json_t *host;
    size_t i;

    json_array_foreach (json_object_get(f->hosts, "hosts"), i, host) {
        const char *name = format_get_text(host, "host");
        json_int_t n;

        if (!json_is_integer(json_object_get(host, "seen_ms")) || format_get_number(host, "seen_ms") > bound)
            continue;
        n = json_integer_value(json_object_get(names, name)) + 1;
        (void) json_object_set_new(names, name, json_integer(n));
        if (n != 2)
            continue;
        report_add(r, SEVERITY_WARN, "%s: two machines have this name and the same machine id", name);
        report_about(r, name, NULL, NULL);
        report_do(r, "limits hold, but no list or event tells the two apart. If one is a clone, give it another host name; and a "
                     "machine id of its own:");
        /* A file of D-Bus would give the new id the value of the old one. */
        report_command(r, "rm", "-f", "/etc/machine-id", "/var/lib/dbus/machine-id");
        report_command(r, "systemd-machine-id-setup");
        report_command(r, "reboot");
    }
    json_decref(names);
}

void doctor_host_drained(const struct facts *f, struct report *r) {
    bool here = json_is_true(json_object_get(f->version, "drained"));
    const json_t *hosts = json_object_get(f->hosts, "hosts");
    char list[LIST_SIZE] = "";
    json_t *host;
    size_t i;

    if (here) {
        report_add(r, SEVERITY_NOTE, "this host is drained: it begins no runs");
        report_about(r, facts_host(f), NULL, NULL);
        report_do(r, "to let it begin runs again:");
        report_command(r, "berth", "undrain");
    }
    json_array_foreach (hosts, i, host)
        if (json_is_true(json_object_get(host, "drained")) &&
            strcmp(format_get_text(host, "host"), facts_host(f)) != 0)
            append(list, format_get_text(host, "host"));
    if (*list)
        report_add(r, SEVERITY_NOTE, "other drained hosts: %s", list);
}

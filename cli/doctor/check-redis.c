/* SPDX-License-Identifier: MIT */
/* Checks of Redis, from what berthd knows of it without asking. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json/format.h"
#include "cli/doctor/doctor.h"

#define EVICTS "Redis evicts keys" /* how berthd's reasons begin (store/redis/client/server-info.c) */
#define TOO_OLD " is too old"
#define OF_REPLICAS " and min-replicas-to-write is 0"
#define OF_POLICY "maxmemory-policy"
#define OF_SNAPSHOT "the last snapshot of Redis failed"
#define LACKS "Redis's user may not" /* how the reason begins that store/redis/link/handshake.c gives */
#define NO_MEMORY "no-memory" /* how blocked_by of a run begins */
#define NO_PERMISSION "NOPERM"

#define INT "%" JSON_INTEGER_FORMAT
#define MEMORY_WARN 80 /* percent of maxmemory */
#define MEMORY_CRIT 95
#define UNSAVED_LONG (2 * 3600 * 1000) /* ms: the defaults of Redis save within an hour */
#define OTHERS_MANY 100                /* clients */
#define CLIENTS_OF_HOST 2

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* Returns for how many milliseconds Redis has been away. */
static double away_ms(const struct facts *f) {
    struct tm tm = {};
    double since;

    if (!strptime(format_get_text(f->redis, "since"), "%Y-%m-%dT%H:%M:%S", &tm))
        return 0;
    since = (double) timegm(&tm) * 1000;
    return (double) f->now / USEC_PER_MSEC > since ? (double) f->now / USEC_PER_MSEC - since : 0;
}

/* Returns the path of Redis's socket, without which redis-cli asks the Redis at port 6379; NULL: it has a port. */
static const char *socket_of(const struct facts *f) {
    const char *address = format_get_text(f->redis, "address");

    return address[0] == '/' ? address : NULL;
}

#define report_redis(f, r, ...)                                                     \
    do {                                                                            \
        const char *socket = socket_of(f);                                          \
                                                                                    \
        if (socket)                                                                 \
            report_command(r, "redis-cli", "-s", socket, __VA_ARGS__);              \
        else                                                                        \
            report_command(r, "redis-cli", __VA_ARGS__);                            \
    } while (0)

void doctor_redis_away(const struct facts *f, struct report *r) {
    const char *reason = format_get_text(f->redis, "reason"),
               *address = format_get_text(f->redis, "address");
    double away = away_ms(f), lease = (double) format_get_number(f->redis, "lease_ms"),
           outage = (double) format_get_number(f->redis, "outage_ms");
    char lasts[FORMAT_SIZE];

    if (!facts_is_redis_away(f))
        return;
    format_msec((json_int_t) away, lasts);
    report_add(r, away > lease / 2 ? SEVERITY_CRIT : SEVERITY_WARN, "Redis%s%s has been away for %s%s%s",
               *address ? " at " : "", address, lasts, *reason ? ": " : "", reason);
    report_measure(r, away / 1000, lease / 2 / 1000);
    if (away < outage)
        report_do(r, "runs are stopped in %s if it does not come back", format_msec((json_int_t) (outage - away), lasts));
    else
        report_do(r, "runs that hold its permits were stopped, except those with on-lease-lost = \"continue\"");
    report_do(r, "berthd tries again by itself; correct what the reason names, or see on the Redis host whether it answers:");
    report_redis(f, r, "PING");
}

void doctor_redis_policy(const struct facts *f, struct report *r) {
    const char *policy = format_get_text(f->redis, "policy"), *reason = format_get_text(f->redis, "reason");
    /* No key of berth expires: volatile-* evicts none of them. */
    bool evicts = *policy && strcmp(policy, "noeviction") != 0 && !begins(policy, "volatile-");

    if (!evicts && !begins(reason, EVICTS))
        return;
    if (evicts)
        report_add(r, SEVERITY_CRIT, "Redis evicts keys: maxmemory-policy is %s", policy);
    else
        report_add(r, SEVERITY_CRIT, "%s", reason);
    report_do(r, "permits can be granted twice; on the Redis host:");
    report_redis(f, r, "CONFIG", "SET", "maxmemory-policy", "noeviction");
}

void doctor_redis_replicas(const struct facts *f, struct report *r) {
    json_int_t replicas = format_get_number(f->redis, "replicas");

    if (replicas == 0 || json_is_integer(json_object_get(f->redis, "good_replicas")))
        return;
    report_add(r, SEVERITY_WARN,
               "Redis has %" JSON_INTEGER_FORMAT " replica%s and min-replicas-to-write is 0", replicas,
               replicas == 1 ? "" : "s");
    report_do(r, "a partitioned old master would go on granting; on the Redis host:");
    report_redis(f, r, "CONFIG", "SET", "min-replicas-to-write", "1");
}

/* Major versions of Redis and of Valkey that berth is tested with. */
static bool is_tested(const char *version) {
    unsigned long major = strtoul(version, NULL, 10);

    return major == 7 || major == 8;
}

void doctor_redis_version(const struct facts *f, struct report *r) {
    const char *server = format_get_text(f->redis, "server"),
               *version = format_get_text(f->redis, "version");
    const char *reason = format_get_text(f->redis, "reason");

    if (strstr(reason, TOO_OLD)) {
        report_add(r, SEVERITY_CRIT, "%s", reason);
        report_do(r, "upgrade it");
    } else if (*version && !is_tested(version)) {
        report_add(r, SEVERITY_NOTE, "berth is not tested with %s %s", server, version);
    }
}

void doctor_redis_latency(const struct facts *f, struct report *r) {
    double trip = json_number_value(json_object_get(f->redis, "rtt_ms")),
           heartbeat = (double) format_get_number(f->redis, "heartbeat_ms");

    if (trip <= heartbeat / 10)
        return;
    report_add(r, trip > heartbeat / 2 ? SEVERITY_CRIT : SEVERITY_WARN,
               "Redis answers a heartbeat in %.0fms (median of the last 20), one is sent every %.4gs", trip,
               heartbeat / 1000);
    report_measure(r, trip, trip > heartbeat / 2 ? heartbeat / 2 : heartbeat / 10);
    report_do(r, "check the network, and what else keeps Redis busy; on the Redis host:");
    report_redis(f, r, "SLOWLOG", "GET", "10");
}

/* --- memory and disk --- */

/* Returns whether berthd has a claim that Redis refused. What Redis said of its memory may be a lease old. */
static bool waits_for_memory(const struct facts *f) {
    json_t *run;
    size_t i;

    json_array_foreach (json_object_get(f->runs, "runs"), i, run)
        if (begins(format_get_text(run, "blocked_by"), NO_MEMORY))
            return true;
    return false;
}

void doctor_redis_memory(const struct facts *f, struct report *r) {
    const json_t *memory = json_object_get(f->redis, "memory");
    json_int_t max = format_get_number(memory, "max"), evicted = format_get_number(memory, "evicted");
    double percent = max > 0 ? (double) format_get_number(memory, "used") * 100 / (double) max : 0;

    if (percent <= MEMORY_CRIT && waits_for_memory(f)) {
        report_add(r, SEVERITY_CRIT, "Redis has no memory for the claim of a run of this host");
        report_do(r, "the run waits; give Redis more memory, or see what fills it, on the Redis host:");
        report_redis(f, r, "--bigkeys");
    } else if (percent > MEMORY_WARN) {
        bool is_crit = percent > MEMORY_CRIT;

        report_add(r, is_crit ? SEVERITY_CRIT : SEVERITY_WARN, "Redis uses %.0f %% of its maxmemory", percent);
        report_measure(r, percent, is_crit ? MEMORY_CRIT : MEMORY_WARN);
        report_do(r, "a full Redis takes no new claims; give it more memory, or see what fills it, on the Redis host:");
        report_redis(f, r, "--bigkeys");
    }
    if (evicted == 0)
        return;
    report_add(r, SEVERITY_WARN, "Redis has evicted " INT " key%s since it started", evicted, evicted == 1 ? "" : "s");
    report_measure(r, (double) evicted, 0);
    report_do(r, "its memory was full; its present policy evicts no key of berth; to begin the count again:");
    report_redis(f, r, "CONFIG", "RESETSTAT");
}

void doctor_redis_persistence(const struct facts *f, struct report *r) {
    const json_t *persistence = json_object_get(f->redis, "persistence");
    json_int_t unsaved = format_get_number(persistence, "unsaved"), saved = format_get_number(persistence, "saved_ms");
    bool appends = json_is_true(json_object_get(persistence, "appends"));
    char since[FORMAT_SIZE];

    if (json_is_true(json_object_get(persistence, "snapshot_failed"))) {
        report_add(r, SEVERITY_WARN, OF_SNAPSHOT);
        report_do(r, "with stop-writes-on-bgsave-error yes (its default) it refuses heartbeats, and all jobs are stopped; "
                     "free its disk, then on the Redis host:");
        report_redis(f, r, "BGSAVE");
    }
    if (appends && json_is_true(json_object_get(persistence, "append_failed"))) {
        report_add(r, SEVERITY_WARN, "Redis cannot write its append-only file");
        report_do(r, "it refuses writes, heartbeats too, until that succeeds; see its log, and whether its disk is full");
    }
    if (!report_is_fine(r, r->check) || appends || unsaved == 0 || saved <= UNSAVED_LONG)
        return;
    report_add(r, SEVERITY_NOTE, "Redis has not saved its data for %s, and has no append-only file", format_msec(saved, since));
    report_measure(r, (double) saved / 1000, UNSAVED_LONG / 1000.0);
    report_do(r, "when it restarts, overrides are gone, and nothing is granted for a lease, until hosts have reported what they hold");
}

/* --- who uses it --- */

void doctor_redis_acl(const struct facts *f, struct report *r) {
    const char *reason = format_get_text(f->redis, "reason");
    const json_t *scripts = json_object_get(f->redis, "scripts");

    if (begins(reason, LACKS) || strstr(reason, NO_PERMISSION)) {
        report_add(r, SEVERITY_CRIT, "%s", reason);
        report_do(r, "berth takes no part in its namespace; give the user the rights of redis.acl, on the Redis host:");
        report_redis(f, r, "ACL", "LIST");
    } else if (json_is_integer(scripts) && json_integer_value(scripts) == 0) {
        report_add(r, SEVERITY_NOTE, "Redis refuses SCRIPT to berth's user: each connection sends the scripts as text");
        report_do(r, "the line of redis.acl has the rights +script|exists and +script|load");
    }
}

void doctor_redis_shared(const struct facts *f, struct report *r) {
    json_int_t hosts = (json_int_t) json_array_size(json_object_get(f->hosts, "hosts"));
    json_int_t others = format_get_number(f->redis, "clients") - CLIENTS_OF_HOST * hosts;

    if (others <= OTHERS_MANY)
        return;
    report_add(r, SEVERITY_NOTE, "Redis has " INT " other clients than the hosts of this namespace", others);
    report_measure(r, (double) others, OTHERS_MANY);
    report_do(r, "what they ask delays grants, and what they store may fill it; who they are, on the Redis host:");
    report_redis(f, r, "CLIENT", "LIST");
}

/* Reports the other warnings of berthd: certificates, many clients, sentinels. */
void doctor_redis_warnings(const struct facts *f, struct report *r) {
    const json_t *warnings = json_object_get(f->redis, "warnings");
    json_t *warning;
    size_t i;

    json_array_foreach (warnings, i, warning) {
        const char *text = json_is_string(warning) ? json_string_value(warning) : "?";

        if (!strstr(text, OF_REPLICAS) && !begins(text, OF_SNAPSHOT) &&
            !(begins(text, "berth does not know the") && strstr(text, OF_POLICY)))
            report_add(r, SEVERITY_WARN, "%s", text);
    }
}

void doctor_heartbeat_bounds(const struct facts *f, double *ret_warn, double *ret_crit) {
    double lease = (double) format_get_number(f->redis, "lease_ms") / 1000,
           heartbeat = (double) format_get_number(f->redis, "heartbeat_ms") / 1000;

    *ret_warn = lease > 0 ? heartbeat + lease / 4 : 0;
    *ret_crit = lease > 0 ? heartbeat + lease / 2 : 0;
}

/* A heartbeat is sent at each interval: if the last answer is older, one is unanswered. */
void doctor_heartbeat(const struct facts *f, struct report *r) {
    double age, warn, crit;

    if (!facts_metric(f, "berth_heartbeat_age_seconds", &age))
        return; /* none has been sent */
    doctor_heartbeat_bounds(f, &warn, &crit);
    if (warn == 0 || age <= warn)
        return;
    report_add(r, age > crit ? SEVERITY_CRIT : SEVERITY_WARN, "Redis has answered no heartbeat for %.1fs",
               age);
    report_measure(r, age, age > crit ? crit : warn);
    report_do(r, "runs are stopped before the lease of %.4gs ends; check whether Redis hangs:",
              (double) format_get_number(f->redis, "lease_ms") / 1000);
    report_command(r, "berth", "redis");
}

void doctor_grace(const struct facts *f, struct report *r) {
    char left[FORMAT_SIZE];

    if (format_get_number(f->redis, "grace_ms") <= 0)
        return;
    report_add(r, SEVERITY_NOTE, "grace period: nothing is granted for up to %s",
               format_duration(f->redis, "grace_ms", left));
    report_do(r, "Redis restarted, failed over or lost its data; hosts report what they hold");
}

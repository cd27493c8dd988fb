/* SPDX-License-Identifier: MIT */

/* Writes doc/faults.md. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "tests/faults/report/report.h"
#include "tests/harness/durations.h"

static void pclosep(FILE **f) {
    if (*f)
        (void) pclose(*f);
}

/* Returns the result of the audit in so many cases. */
static const char *audit_text(char text[static 64], unsigned cases, unsigned unproved, unsigned broken) {
    if (broken > 0)
        snprintf(text, 64, "broken, as said, in %u of %u", broken, cases);
    else if (unproved > 0 && cases > 1)
        snprintf(text, 64, "not proved in %u of %u", unproved, cases);
    else
        snprintf(text, 64, "%s", unproved > 0 ? "not proved" : "proved");
    return text;
}

/* Writes one row for all failpoints with this action. */
static void write_failpoints(FILE *f, const struct report *r, const struct failpoint_action *action) {
    unsigned n = 0, failed = 0, unproved = 0;
    uint64_t overlaps = 0, idle = 0;
    char text[64];

    for (size_t i = 0; i < r->n; i++) {
        const char *at = strchr(r->rows[i].name, ':');

        if (!at || strcmp(at + 1, action->name) != 0)
            continue;
        n += r->rows[i].cases;
        failed += r->rows[i].failed;
        unproved += r->rows[i].unproved;
        overlaps += r->rows[i].overlaps;
        idle = r->rows[i].longest_idle > idle ? r->rows[i].longest_idle : idle;
    }
    if (n > 0)
        fprintf(f, "| a process %s, at each of %u steps between two outside effects | %u | %s | %s | %.1f s | %s |\n", action->what, n, n,
                failed ? "**failed**" : "kept", overlaps ? "**overlap**" : "0", (double) idle / 1e6, audit_text(text, n, unproved, 0));
}

static void write_row(FILE *f, const struct report_row *row) {
    const struct fault *fault = faults_find(row->name);
    char failed[32], text[64];

    if (strchr(row->name, ':'))
        return;
    snprintf(failed, sizeof(failed), "**%u failed**", row->failed);
    fprintf(f, "| %s | %u | %s | %s | %.1f s | %s |\n", fault ? fault->what : "random mixes of 3 to 5 of them", row->injected,
            row->failed ? failed : "kept", row->overlaps ? "**overlap**" : "0", (double) row->longest_idle / 1e6,
            audit_text(text, row->cases, row->unproved, row->broken));
}

static double part(const struct report *r, unsigned percent) {
    size_t i = (r->n_margins - 1) * percent / 100;

    return (double) r->margins[i] / 1000;
}

static void write_margins(FILE *f, struct report *r) {
    if (r->n_margins == 0)
        return;
    durations_sort(r->margins, r->n_margins);
    fprintf(f,
            "\n## Margins\n\n%zu times a command was stopped because its lease was about to end. Its last process was gone this long before the\n"
            "end of the lease (`fenced` names it each time): least %.0f ms, 1 %% %.0f ms, median %.0f ms, most %.0f ms.\n",
            r->n_margins, part(r, 0), part(r, 1), part(r, 50), part(r, 100));
}

static void write_doubts(FILE *f, const struct report *r) {
    fputs("\n## What `berth audit` finds\n\n"
          "`berth audit` also checks the journals of each case. It must find no violation, except of the order of claims if a key with that\n"
          "order is deleted by hand, because no journal records this. If a berthd or a host is killed, the end of a grant may be in no journal:\n"
          "a later grant is then no violation, but not proved either (berth-audit(1)). That happened in:\n\n",
          f);
    fputs(r->n_doubts > 0 ? "| case | in cases | grants that are not proved, because an earlier one may not have ended |\n|---|---|---|\n" : "Nothing.\n", f);
    for (size_t i = 0; i < r->n_doubts; i++)
        fprintf(f, "| %s | %u | %u: %s |\n", r->doubts[i].name, r->doubts[i].cases, r->doubts[i].n, r->doubts[i].why);
}

/* Tests name their lessons; a script makes the list. */
static void write_lessons(FILE *f) {
    _cleanup_(pclosep) FILE *list = popen("tests/check-lessons.sh table", "re");
    char line[1024];

    fputs("\n## Failures of other systems, and the tests that look for them here\n\n| reported as | what happened | tests |\n|---|---|---|\n", f);
    while (list && fgets(line, sizeof(line), list))
        fputs(line, f);
}

/* Reads "Redis server v=7.0.15", or "redis-check-rdb 7.0.15", which is the same program. */
static void name_redis(char ret[static 128]) {
    static const char tool[] = "redis-check-rdb ";
    _cleanup_(pclosep) FILE *f =
        popen("\"${BERTH_REDIS_SERVER:-$(command -v redis-server || command -v redis-check-rdb || command -v valkey-server)}\" "
              "--version", "re");
    char line[128] = "", *rest;

    if (f && fgets(line, sizeof(line), f))
        line[strcspn(line, "\n")] = '\0';
    rest = strstr(line, " sha=");
    if (rest)
        *rest = '\0';
    if (strncmp(line, tool, strlen(tool)) == 0)
        snprintf(ret, 128, "Redis %s", line + strlen(tool));
    else
        snprintf(ret, 128, "%s", line);
}

static void write_head(FILE *f, const struct report *r) {
    char server[128], date[32];
    struct utsname name;
    time_t now = time(NULL);
    struct tm tm;
    uint64_t runs = 0;

    for (size_t i = 0; i < r->n; i++)
        runs += r->rows[i].runs;
    (void) uname(&name);
    (void) strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &tm));
    name_redis(server);
    fprintf(f,
            "# Faults survived\n\n"
            "Made by `make faults SEED=%" PRIu64 " MIXES=%" PRIu64 "` on %s with berth %s, %s, %s %s, in %" PRIu64 " s: %" PRIu64
            " runs on three hosts,\nlease 2 s, pools of 3, 2 and (of each key of a pattern) 1 permit, commands that end at "
            "once, ignore TERM, double-fork and "
            "setsid.\nThe commands themselves and kernel locks record what ran when; the checker knows nothing of berth but the "
            "tickets\nthat hosts log.\n\n"
            "Runs started twice: %" PRIu64 ". Exit statuses lost or changed: %" PRIu64 ", of all runs whose command ended by itself (%" PRIu64
            " of them jobs,\nwhose status the journals must have).\n\n"
            "%u cases were run once more because the machine itself stood still for more than 150 ms, which exceeds the margin of such a short lease.\n\n"
            "Injected: how often the fault was injected. Kept: the limit, the order and the exit statuses were right, no run was started twice,\n"
            "every waiting claim was served, and nothing was left behind. Longest idle: the longest time that a claim waited although its\n"
            "permits were free and no claim was ahead of it. The test allows 4/3 of a lease until the permits of a dead host are free (R4), or\n"
            "as long as a live host cannot start a granted run (its runner, guards or clients hang), and a second for the machine. While Redis\n"
            "is broken nothing is granted; then it allows a lease of grace and a second. In a mix the faults of several hosts may follow each\n"
            "other.\n\n",
            r->seed, r->mixes, date, VERSION, server, name.sysname, name.release, (clock_boottime() - r->since) / USEC_PER_SEC, runs,
            r->doubled, r->lost, r->jobs, r->again);
}

static const char assumptions[] =
    "\n## What is not covered\n\n"
    "The limit depends on these assumptions; `tests/faults/test-assumptions.c` breaks each of them on purpose and shows the overlap.\n\n"
    "| assumption | broken by | what berth does about it |\n|---|---|---|\n"
    "| the processes of a machine run | the whole host frozen with its commands (a paused virtual machine) for longer than a lease, then thawed | "
    "commands are stopped as soon as it runs again; the token (`BERTH_TOKEN`) distinguishes the old holder from the new one |\n"
    "| one Redis master takes writes | a network split: hosts on both sides have a master that accepts writes | "
    "set `min-replicas-to-write`; berthd warns when Redis has replicas and it is 0 |\n"
    "| Redis keeps its data | the key `held` of a pool deleted by hand | a host notices it within about a lease, and all hosts report "
    "again, in grace. The same holds for every other key, but claims wait longer then, and the order of the queue may be lost |\n"
    "| of those who stop a command, one can act at its deadline: its guard or `berth run`, or berthd with berth-runner | "
    "its guard or `berth run` is frozen or killed, and berthd as well, and the lease is lost | "
    "berth-runner kills what the guard or `berth run` does not, if berthd asks for it |\n";

int report_write(struct report *r, const char *path) {
    _cleanup_fclose_ FILE *f = fopen(path, "we");

    if (!f) {
        printf("%s: %s\n", path, strerror(errno));
        return -errno;
    }
    write_head(f, r);
    fputs("| fault | injected | result | overlap | longest idle | audit |\n|---|---|---|---|---|---|\n", f);
    for (size_t i = 0; i < r->n; i++)
        write_row(f, &r->rows[i]);
    for (size_t i = 0; i < FAILPOINT_ACTIONS; i++)
        write_failpoints(f, r, &failpoint_actions[i]);
    write_margins(f, r);
    write_doubts(f, r);
    fputs(assumptions, f);
    write_lessons(f);
    return 0;
}

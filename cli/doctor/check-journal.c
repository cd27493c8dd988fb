/* SPDX-License-Identifier: MIT */
/* Checks of the journal: whether a reboot or a full disk loses events, how old it is, and what journald dropped: its own
 * messages about that, and gaps in the numbers of berthd's events. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/journal/entries.h"
#include "base/journal/journal-read.h"
#include "base/json/format.h"
#include "base/number.h"
#include "cli/doctor/doctor.h"

#define WEEK (7 * 24 * 3600 * USEC_PER_SEC)
#define DAY (24 * 3600 * USEC_PER_SEC)
#define TIME_MAX USEC_PER_SEC /* to read berthd's events */
#define DROPPED "MESSAGE_ID=a596d6fe7bfa4994828e72309e95d61e" /* SD_MESSAGE_JOURNAL_DROPPED */
#define PROCESS_SIZE 64

static const char *const units[] = {ENTRIES_UNIT_DEFAULT, "berth-runner.service"};

struct lost {
    uint64_t n[ELEMENTSOF(units)]; /* messages that journald dropped */
    uint64_t events;               /* missing numbers */
    usec_t first;                  /* when the event after the first gap was logged */
    usec_t read_until;             /* 0: all were read */
};

/* Opens the journal, from its first entry on. */
static int open_journal(const struct facts *f, struct journal_reader **ret) {
    char directory[512];

    (void) snprintf(directory, sizeof(directory), "%s/var/log/journal", f->root);
    return journal_reader_new(ret, *f->root ? directory : NULL, false);
}

static int open_last_day(const struct facts *f, struct journal_reader **ret) {
    int k = open_journal(f, ret);

    if (k == 0)
        journal_reader_since(*ret, usec_sub(f->now, DAY));
    return k;
}

/* --- what journald says --- */

/* "Suppressed 120 messages from berthd.service" */
static void count_dropped(struct lost *lost, const char *message) {
    char unit[64];
    uint64_t n;

    if (sscanf(message, "Suppressed %" SCNu64 " messages from %63s", &n, unit) != 2)
        return;
    for (size_t i = 0; i < ELEMENTSOF(units); i++)
        if (strcmp(unit, units[i]) == 0)
            lost->n[i] += n;
}

/* journald alone can send by the transport "driver". */
static int read_dropped(const struct facts *f, struct lost *lost) {
    _cleanup_(journal_reader_freep) struct journal_reader *reader = NULL;
    int k = open_last_day(f, &reader);

    k = k < 0 ? k : journal_reader_match(reader, DROPPED);
    k = k < 0 ? k : journal_reader_match(reader, "_TRANSPORT=driver");
    while (k >= 0 && (k = journal_reader_next(reader)) > 0) {
        _cleanup_free_ char *message = NULL;

        k = journal_reader_get(reader, "MESSAGE", &message);
        if (message)
            count_dropped(lost, message);
    }
    return k;
}

/* --- what is missing --- */

struct place { /* of the last event of a process */
    char process[PROCESS_SIZE];
    uint64_t seq;
};

/* Returns 0 or a negative errno. Entries that are no event have no number. */
static int read_place(struct journal_reader *reader, struct place *ret) {
    _cleanup_free_ char *seq = NULL, *pid = NULL, *boot = NULL;
    int k = journal_reader_get(reader, "BERTH_SEQ", &seq);

    *ret = (struct place) {0};
    if (k < 0 || !seq || number_parse(seq, INT64_MAX, &ret->seq) < 0)
        return k;
    k = journal_reader_get(reader, "_PID", &pid);
    k = k < 0 ? k : journal_reader_get(reader, "_BOOT_ID", &boot);
    (void) snprintf(ret->process, sizeof(ret->process), "%.40s/%.16s", boot ? boot : "", pid ? pid : "");
    return k;
}

/* One berthd at a time writes events of the unit, each with the next number. */
static int compare(struct journal_reader *reader, struct lost *lost, struct place *last, const struct place *now) {
    int k = 0;

    if (now->seq == 0)
        return 0;
    if (strcmp(now->process, last->process) == 0 && now->seq > last->seq + 1) {
        lost->events += now->seq - last->seq - 1;
        if (lost->first == 0)
            k = journal_reader_time(reader, &lost->first);
    }
    *last = *now;
    return k;
}

static int read_events(const struct facts *f, struct lost *lost) {
    _cleanup_(journal_reader_freep) struct journal_reader *reader = NULL;
    usec_t until = usec_add(clock_boottime(), TIME_MAX);
    struct place last = {0}, now;
    int k = open_last_day(f, &reader);

    k = k < 0 ? k : journal_reader_match(reader, "_SYSTEMD_UNIT=" ENTRIES_UNIT_DEFAULT);
    while (k >= 0 && (k = journal_reader_next(reader)) > 0) {
        if (clock_boottime() >= until)
            return journal_reader_time(reader, &lost->read_until);
        k = read_place(reader, &now);
        k = k < 0 ? k : compare(reader, lost, &last, &now);
    }
    return k;
}

/* --- what was dropped --- */

static void add_dropped(struct report *r, const struct lost *lost) {
    for (size_t i = 0; i < ELEMENTSOF(units); i++) {
        if (lost->n[i] == 0)
            continue;
        report_add(r, SEVERITY_WARN, "journald dropped %" PRIu64 " messages of %s within a day", lost->n[i], units[i]);
        report_measure(r, (double) lost->n[i], 0);
        report_do(r, "%s; raise LogRateLimitBurst= of the unit:",
                  i == 0 ? "berth audit cannot prove what these recorded" : "output of jobs is missing");
        report_command(r, "systemctl", "edit", units[i]);
    }
}

static void add_missing(const struct facts *f, struct report *r, const struct lost *lost) {
    char ago[FORMAT_SIZE];

    if (lost->events > 0) {
        report_add(r, SEVERITY_CRIT, "the journal lacks %" PRIu64 " events of berthd, the first %s ago", lost->events,
                   format_msec((json_int_t) (usec_sub(f->now, lost->first) / USEC_PER_MSEC), ago));
        report_measure(r, (double) lost->events, 0);
        report_do(r, "berth audit names them, and what it cannot prove without them:");
        report_command(r, "berth", "audit", "--since", "-1d");
    }
    if (lost->read_until == 0)
        return;
    report_add(r, SEVERITY_NOTE, "of the last day's events only those were read that are older than %s",
               format_msec((json_int_t) (usec_sub(f->now, lost->read_until) / USEC_PER_MSEC), ago));
    report_do(r, "there are many; berth audit reads all");
}

void doctor_journal_rate(const struct facts *f, struct report *r) {
    struct lost lost = {0};
    int k = read_dropped(f, &lost);

    k = k < 0 ? k : read_events(f, &lost);
    if (k == -EACCES)
        report_add(r, SEVERITY_UNKNOWN, "needs root, or the group systemd-journal");
    if (k < 0)
        return; /* check `journal` reports a missing journald */
    add_dropped(r, &lost);
    add_missing(f, r, &lost);
}

/* --- whether there is a journal, and how old it is --- */

void doctor_journal(const struct facts *f, struct report *r) {
    double lost;

    if (facts_metric(f, "berth_journal_errors_total", &lost) && lost > 0) {
        report_add(r, SEVERITY_WARN, "the journal did not take %.0f events of this berthd", lost);
        report_measure(r, lost, 0);
        report_do(r, "berth audit cannot prove what the lost entries recorded; check whether the disk is full:");
        report_command(r, "journalctl", "--disk-usage");
    }
    if (facts_has_path(f, "/var/log/journal"))
        return;
    if (!facts_has_path(f, "/run/log/journal")) {
        report_add(r, SEVERITY_NOTE,
                   "this machine has no journal: berthd's events go to its standard error alone");
        return;
    }
    report_add(r, SEVERITY_WARN,
               "the journal does not survive a reboot: berth history and berth audit see this boot alone");
    report_do(r, "keep it on the disk:");
    report_command(r, "mkdir", "-p", "/var/log/journal");
    report_command(r, "journalctl", "--flush");
}

/* Stores when berthd wrote its first entry; 0: it wrote none. Returns 0 or a negative errno. */
static int find_oldest(const struct facts *f, usec_t *ret) {
    _cleanup_(journal_reader_freep) struct journal_reader *reader = NULL;
    int r = open_journal(f, &reader);

    *ret = 0;
    if (r == 0)
        r = journal_reader_match(reader, "_SYSTEMD_UNIT=" ENTRIES_UNIT_DEFAULT);
    if (r == 0)
        r = journal_reader_next(reader);
    return r > 0 ? journal_reader_time(reader, ret) : r;
}

void doctor_journal_age(const struct facts *f, struct report *r) {
    usec_t oldest;
    int k = find_oldest(f, &oldest);
    char age[FORMAT_SIZE];

    if (k == -EACCES) {
        report_add(r, SEVERITY_UNKNOWN, "needs root, or the group systemd-journal");
        return;
    }
    if (k < 0 || oldest == 0 || f->now >= usec_add(oldest, WEEK))
        return; /* check `journal` reports a missing journald */
    format_msec((json_int_t) (usec_sub(f->now, oldest) / USEC_PER_MSEC), age);
    report_add(r, SEVERITY_NOTE, "the journal of berthd begins %s ago", age);
    report_measure(r, (double) usec_sub(f->now, oldest) / USEC_PER_SEC, (double) WEEK / USEC_PER_SEC);
    report_do(r, "berth history and berth audit see nothing older; SystemMaxUse= of journald.conf(5) sets "
                 "its size");
}

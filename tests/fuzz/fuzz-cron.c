/* SPDX-License-Identifier: MIT */

/* Schedules: "ENTRIES\nEXCEPTIONS", each with ';' between. What is right has due times that grow, that are
 * on whole minutes and match, and is searched in a bounded time. What is wrong has an error. */

#include <string.h>
#include <time.h>

#include "base/schedule/schedule.h"
#include "tests/fuzz/fuzz.h"

#define SEARCH_MAX 200 /* ms of a search with sanitizers: 10 ms are promised without */

static int64_t milliseconds(void) {
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void add_all(struct schedule *schedule, char *texts,
                    int (*add)(struct schedule *schedule, const char *text, char *error)) {
    for (char *text; (text = strsep(&texts, ";"));) {
        char error[CRON_ERROR_SIZE] = "";

        if (add(schedule, text, error) < 0)
            FUZZ_ASSERT(error[0]);
    }
}

static void check_due(const struct schedule *schedule, const struct zone *zone,
                      const struct schedule_due *due) {
    const struct cron *cron = &schedule->entries[due->entry].cron;
    char text[SCHEDULE_TEXT_SIZE];
    struct civil civil;
    int64_t again;

    FUZZ_ASSERT(due->entry < schedule->n_entries);
    civil_from_seconds(due->shift == SCHEDULE_SHIFT_GAP ? due->wanted : due->at + zone_offset(zone, due->at),
                       &civil);
    FUZZ_ASSERT(cron_matches(cron, &civil));
    FUZZ_ASSERT(civil.second == 0);
    FUZZ_ASSERT(due->shift == SCHEDULE_SHIFT_NONE || !cron_is_every_hour(cron));
    FUZZ_ASSERT(schedule_parse_time(schedule_format(zone, due->at, text), &again) == 0 && again == due->at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct zone *zone;
    _cleanup_free_ char *text = strndup((const char *) data, size);
    struct schedule_due due = {.at = 1798761600}; /* 2027 */
    struct schedule schedule = {};
    char *excepts = text;
    int64_t time;

    if (!zone && zone_load(ZONE_DIRECTORY, "Europe/Berlin", &zone) != 0)
        abort();
    (void) schedule_parse_time(text, &time);
    add_all(&schedule, strsep(&excepts, "\n"), schedule_add);
    if (excepts)
        add_all(&schedule, excepts, schedule_add_except);
    for (int i = 0; i < 5; i++) {
        int64_t before = due.at, begin = milliseconds();
        bool is_due = schedule_next(&schedule, zone, before, &due);

        FUZZ_ASSERT(milliseconds() - begin <= SEARCH_MAX);
        FUZZ_ASSERT(is_due || i > 0 || schedule.n_excepts > 0 || schedule.n_entries == 0);
        if (!is_due)
            break;
        FUZZ_ASSERT(due.at > before && due.at < SCHEDULE_END);
        check_due(&schedule, zone, &due);
    }
    schedule_done(&schedule);
    return 0;
}

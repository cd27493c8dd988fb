/* SPDX-License-Identifier: MIT */

/* Prints due times of base/schedule for programs that compare them with their own. Each line of the input
 *
 *     ZONE<TAB>FROM<TAB>TO<TAB>ENTRY[;ENTRY...][<TAB>EXCEPT[;EXCEPT...]]
 *
 * has FROM (exclusive) and TO (inclusive) in seconds since 1970. For each line the tool prints one line:
 * the due times in seconds, separated by spaces, or "error: TEXT".
 */

#include <string.h>

#include "base/schedule/schedule.h"

static char zone_name[256];
static struct zone *zone;

static const char *explain(int r) {
    switch (r) {
    case ZONE_E_UNKNOWN:
        return "no such zone";
    case ZONE_E_INVALID:
        return "not a zone file of version 2 or later";
    case ZONE_E_LEAP:
        return "counts leap seconds";
    default:
        return strerror(-r);
    }
}

static int use_zone(const char *name) {
    int r = 0;

    if (zone && strcmp(zone_name, name) == 0)
        return 0;
    zone = zone_free(zone);
    r = zone_load(ZONE_DIRECTORY, name, &zone);
    snprintf(zone_name, sizeof(zone_name), "%s", name);
    return r;
}

static int add_all(struct schedule *schedule, char *texts,
                   int (*add)(struct schedule *, const char *, char *), char *error) {
    int r = 0;

    for (char *text; r == 0 && (text = strsep(&texts, ";"));)
        r = add(schedule, text, error);
    return r;
}

static void print(const struct schedule *schedule, int64_t from, int64_t to) {
    struct schedule_due due = {.at = from};
    const char *space = "";

    for (; schedule_next(schedule, zone, due.at, &due) && due.at <= to; space = " ")
        printf("%s%lld", space, (long long) due.at);
    putchar('\n');
}

static void answer(char *line) {
    char *name = strsep(&line, "\t"), *from = strsep(&line, "\t"), *to = strsep(&line, "\t"),
         *entries = strsep(&line, "\t");
    char *excepts = line, error[CRON_ERROR_SIZE] = "out of memory";
    struct schedule schedule = {};
    int r = entries ? use_zone(name) : -EINVAL;

    if (r != 0) {
        printf("error: %s\n", explain(r));
        return;
    }
    if (add_all(&schedule, entries, schedule_add, error) < 0 ||
        (excepts && add_all(&schedule, excepts, schedule_add_except, error) < 0))
        printf("error: %s\n", error);
    else
        print(&schedule, strtoll(from, NULL, 10), strtoll(to, NULL, 10));
    schedule_done(&schedule);
}

int main(void) {
    _cleanup_free_ char *line = NULL;
    size_t size = 0;

    for (ssize_t n; (n = getline(&line, &size, stdin)) > 0;) {
        if (line[n - 1] == '\n')
            line[n - 1] = '\0';
        answer(line);
    }
    zone = zone_free(zone);
    return 0;
}

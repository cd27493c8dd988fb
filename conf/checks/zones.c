/* SPDX-License-Identifier: MIT */

/* Checks whether this machine has the zones of schedules, and whether `except` leaves any due time. */

#include <string.h>

#include "base/array.h"
#include "conf/syntax/notes.h"
#include "conf/settings.h"

struct known_zone {
    const char *name;
    struct zone *zone; /* NULL: `answer` is the reason */
    int answer;        /* of zone_load() */
};

struct checker {
    const char *directory;
    struct known_zone *zones;
    size_t n;
    struct notes notes;
};

/* Returns a zone; each is read once. NULL: out of memory, which is noted. */
static const struct known_zone *get_zone(struct checker *checker, const char *name) {
    struct known_zone *known;

    for (size_t i = 0; i < checker->n; i++)
        if (strcmp(checker->zones[i].name, name) == 0)
            return &checker->zones[i];
    if (!array_grow(checker->zones, checker->n)) {
        checker->notes.out_of_memory = true;
        return NULL;
    }
    known = &checker->zones[checker->n];
    *known = (struct known_zone){.name = name};
    known->answer = zone_load(checker->directory, name, &known->zone);
    checker->n++;
    if (known->answer == -ENOMEM)
        checker->notes.out_of_memory = true;
    return known;
}

static void note_zone(struct checker *checker, const struct settings_place *place, const char *where,
                      const struct known_zone *zone) {
    char text[ZONE_EXPLAIN_SIZE];

    notes_add(&checker->notes, place, "%szone \"%s\" %s", where, zone->name,
              zone_explain(checker->directory, zone->name, zone->answer, text));
}

static void check_top(struct checker *checker, const struct settings *s) {
    const struct known_zone *zone = s->zone.place.file ? get_zone(checker, s->zone.name) : NULL;

    if (zone && zone->answer != 0)
        note_zone(checker, &s->zone.place, "", zone);
}

static bool is_inherited(const struct settings *s, const struct zone_setting *zone) {
    return zone->place.file && zone->place.file == s->zone.place.file &&
           zone->place.line == s->zone.place.line;
}

static void check_job(struct checker *checker, const struct settings *s, const struct job_settings *job,
                      usec_t now_realtime) {
    const struct job_triggers *triggers = &job->triggers;
    const struct known_zone *zone;
    char where[NAME_MAX_LENGTH + 16];
    struct schedule_due due;

    if (schedule_is_empty(&triggers->schedule) && !triggers->zone.place.file)
        return;
    snprintf(where, sizeof(where), "job \"%s\": ", job->name);
    zone = get_zone(checker, triggers->zone.name);
    if (!zone)
        return;
    if (zone->answer != 0 && !is_inherited(s, &triggers->zone))
        note_zone(checker, triggers->zone.place.file ? &triggers->zone.place : &job->place, where, zone);
    if (zone->answer == 0 && triggers->schedule.n_excepts > 0 &&
        !schedule_next(&triggers->schedule, zone->zone, (int64_t) (now_realtime / USEC_PER_SEC), &due))
        notes_add(&checker->notes, &job->place, "%s" SCHEDULE_NONE_LEFT, where);
}

int settings_check_zones(const struct settings *s, const char *directory, usec_t now_realtime,
                         struct settings_errors *errors) {
    struct checker checker = {.directory = directory};
    int r;

    check_top(&checker, s);
    for (size_t i = 0; i < s->n_jobs; i++)
        check_job(&checker, s, &s->jobs[i], now_realtime);
    r = checker.notes.out_of_memory ? -ENOMEM : checker.notes.n > 0 ? SETTINGS_E_INVALID : 0;
    notes_finish(&checker.notes, s->files, s->n_files, errors);
    notes_done(&checker.notes);
    for (size_t i = 0; i < checker.n; i++)
        zone_free(checker.zones[i].zone);
    free(checker.zones);
    return r;
}

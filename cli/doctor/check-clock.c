/* SPDX-License-Identifier: MIT */
/* Checks of the clocks of this host, and whether berthd stood still. */
#include <math.h>

#include "base/json/format.h"
#include "cli/doctor/doctor.h"

#define OFFSET_WARN 2000 /* ms */
#define OFFSET_CRIT 60000
#define RATE_WARN 3000 /* millionths */
#define RATE_CRIT 8000
#define DAY (24 * 3600 * 1000) /* ms */

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

void doctor_clock_offset(const struct facts *f, struct report *r) {
    const json_t *clock = json_object_get(f->redis, "clock");
    double offset = number(clock, "offset_ms"), least = fabs(offset) - number(clock, "error_ms");
    char text[FORMAT_SIZE];
    bool is_crit = least > OFFSET_CRIT;

    if (least <= OFFSET_WARN)
        return;
    report_add(r, is_crit ? SEVERITY_CRIT : SEVERITY_WARN, "the clock of this host is %s %s that of Redis",
               format_msec((json_int_t) fabs(offset), text), offset > 0 ? "behind" : "ahead of");
    report_measure(r, fabs(offset) / 1000, is_crit ? OFFSET_CRIT / 1000 : OFFSET_WARN / 1000);
    report_do(r, "leases do not depend on it; journals, schedules, --since and the ends of overrides do; "
                 "see on both hosts whether the time is synchronized:");
    report_command(r, "timedatectl");
}

void doctor_clock_rate(const struct facts *f, struct report *r) {
    double rate = number(json_object_get(f->redis, "clock"), "rate_ppm");
    bool is_crit = fabs(rate) > RATE_CRIT;

    if (fabs(rate) <= RATE_WARN)
        return;
    report_add(r, is_crit ? SEVERITY_CRIT : SEVERITY_WARN, "the clock of this host runs %.1f %% %s than that of Redis",
               fabs(rate) / 10000, rate > 0 ? "slower" : "faster");
    report_measure(r, fabs(rate) / 10000, (is_crit ? RATE_CRIT : RATE_WARN) / 10000.0);
    report_do(r, "leases are safe as long as the clocks of two hosts differ in rate by 1 %% at most; "
                 "see on both hosts which clock the kernel uses:");
    report_command(r, "cat", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
}

void doctor_suspend(const struct facts *f, struct report *r) {
    const json_t *standstill = json_object_get(f->redis, "standstill");
    json_int_t lasted = format_get_number(standstill, "lasted_ms"), lease = format_get_number(f->redis, "lease_ms");
    char how_long[FORMAT_SIZE], ago[FORMAT_SIZE];
    bool is_lost = lasted > lease;

    if (!json_is_object(standstill) || format_get_number(standstill, "ago_ms") > DAY)
        return;
    report_add(r, is_lost ? SEVERITY_WARN : SEVERITY_NOTE, "berthd or this machine stood still for %s, %s ago%s",
               format_msec(lasted, how_long), format_duration(standstill, "ago_ms", ago),
               is_lost ? ": longer than the lease" : "");
    report_measure(r, (double) lasted / 1000, (double) (is_lost ? lease : format_get_number(f->redis, "heartbeat_ms")) / 1000);
    report_do(r, is_lost ? "its runs lost their permits; was the machine suspended, moved to another host, or overloaded?"
                         : "was the machine suspended, moved to another host, or overloaded?");
}

/* SPDX-License-Identifier: MIT */
#include "cli/history/cells.h"

#include <stdio.h>
#include <string.h>

#define MINUTES(n) (60000ULL * (n))
#define HOURS(n) (60 * MINUTES(n))

char *cells_add(char *end, double value, double highest, bool utf8) {
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char ascii[] = ".:-=+*#%@";
    size_t n = utf8 ? sizeof(blocks) / sizeof(blocks[0]) : sizeof(ascii) - 1, level;

    if (value <= 0)
        return stpcpy(end, " ");
    if (value >= highest)
        level = n;
    else
        for (level = 1; (double) level * highest < value * (double) n;)
            level++;
    if (utf8)
        return stpcpy(end, blocks[level - 1]);
    *end++ = ascii[level - 1];
    *end = '\0';
    return end;
}

/* Formats a number of each unit; the smaller one is left out if it is 0. */
static const char *two_units(char *buffer, unsigned long long n, char unit, unsigned long long rest,
                             char smaller) {
    if (rest > 0)
        snprintf(buffer, CELLS_SPAN_SIZE, "%llu%c%llu%c", n, unit, rest, smaller);
    else
        snprintf(buffer, CELLS_SPAN_SIZE, "%llu%c", n, unit);
    return buffer;
}

const char *cells_span(unsigned long long msec, char buffer[static CELLS_SPAN_SIZE]) {
    unsigned long long hours = (msec + MINUTES(30)) / HOURS(1), minutes = (msec + 30000) / MINUTES(1);

    if (msec < MINUTES(2))
        return two_units(buffer, (msec + 500) / 1000, 'S', 0, ' ');
    if (minutes < 120)
        return two_units(buffer, minutes, 'M', 0, ' ');
    if (minutes <= 48 * 60)
        return two_units(buffer, minutes / 60, 'H', minutes % 60, 'M');
    return two_units(buffer, hours / 24, 'D', hours % 24, 'H');
}

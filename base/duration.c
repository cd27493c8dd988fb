/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DURATION_MAX (UINT64_C(3650) * 86400 * USEC_PER_SEC)

/* Largest first, except that "ms" precedes its own prefix "m". */
static const struct unit {
    const char *name;
    usec_t usec;
} units[] = {
    {"d", 86400 * USEC_PER_SEC}, {"h", 3600 * USEC_PER_SEC}, {"m", 60 * USEC_PER_SEC},
    {"s", USEC_PER_SEC},         {"ms", USEC_PER_MSEC},
};

int duration_parse(const char *text, usec_t *ret_usec) {
    const size_t n_units = sizeof(units) / sizeof(units[0]);
    usec_t total = 0;
    size_t next = 0;

    if (*text == '\0')
        return -EINVAL;

    while (*text != '\0') {
        size_t digits = strspn(text, "0123456789"), letters, unit;
        uint64_t value = 0;

        if (digits == 0)
            return -EINVAL;
        for (size_t i = 0; i < digits; i++) {
            if (value > DURATION_MAX)
                return -ERANGE;
            value = value * 10 + (uint64_t) (text[i] - '0');
        }
        text += digits;
        letters = strspn(text, "dhms");
        for (unit = next; unit < n_units; unit++)
            if (strlen(units[unit].name) == letters && strncmp(text, units[unit].name, letters) == 0)
                break;
        if (letters == 0 || unit == n_units)
            return -EINVAL;
        if (value > DURATION_MAX / units[unit].usec)
            return -ERANGE;
        total += value * units[unit].usec;
        if (total > DURATION_MAX)
            return -ERANGE;
        text += letters;
        next = unit + 1;
    }
    *ret_usec = total;
    return 0;
}

const char *duration_format(usec_t usec, char buffer[static DURATION_TEXT_SIZE]) {
    size_t n = 0;

    if (usec == USEC_INFINITY)
        return memcpy(buffer, "never", sizeof("never"));
    if (usec < USEC_PER_MSEC)
        return memcpy(buffer, "0s", sizeof("0s"));
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        usec_t count = usec / units[i].usec;

        if (count == 0)
            continue;
        n += (size_t) snprintf(buffer + n, DURATION_TEXT_SIZE - n, "%" PRIu64 "%s", count, units[i].name);
        usec %= units[i].usec;
    }
    return buffer;
}

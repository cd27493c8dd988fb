/* SPDX-License-Identifier: MIT */
#include "base/json/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND ((json_int_t) 1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define INT "%" JSON_INTEGER_FORMAT

const char *format_get_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

json_int_t format_get_number(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

const char *format_msec(json_int_t msec, char buffer[static FORMAT_SIZE]) {
    if (msec < SECOND)
        snprintf(buffer, FORMAT_SIZE, INT "ms", msec < 0 ? 0 : msec);
    else if (msec < 10 * SECOND)
        snprintf(buffer, FORMAT_SIZE, INT "." INT "s", msec / SECOND, msec % SECOND / 100);
    else if (msec < MINUTE)
        snprintf(buffer, FORMAT_SIZE, INT "s", msec / SECOND);
    else if (msec < HOUR)
        snprintf(buffer, FORMAT_SIZE, INT "m" INT "s", msec / MINUTE, msec % MINUTE / SECOND);
    else if (msec < DAY)
        snprintf(buffer, FORMAT_SIZE, INT "h" INT "m", msec / HOUR, msec % HOUR / MINUTE);
    else
        snprintf(buffer, FORMAT_SIZE, INT "d" INT "h", msec / DAY, msec % DAY / HOUR);
    return buffer;
}

const char *format_duration(const json_t *object, const char *key, char buffer[static FORMAT_SIZE]) {
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) ? format_msec(json_integer_value(value), buffer) : "";
}

json_int_t format_get_time(const json_t *object, const char *key) {
    struct tm tm = {};
    const char *rest = strptime(format_get_text(object, key), "%Y-%m-%dT%H:%M:%S", &tm);

    return rest ? (json_int_t) timegm(&tm) * SECOND + (json_int_t) (strtod(*rest == '.' ? rest : "0", NULL) * SECOND) : 0;
}

const char *format_when(const json_t *object, const char *key, usec_t now_realtime,
                        char buffer[static FORMAT_SIZE]) {
    json_int_t time = format_get_time(object, key), away = time - (json_int_t) (now_realtime / USEC_PER_MSEC);
    char duration[FORMAT_SIZE];

    if (time == 0)
        return "";
    format_msec(away < 0 ? -away : away, duration);
    snprintf(buffer, FORMAT_SIZE, away > 0 ? "in %.64s" : "%.64s ago", duration);
    return buffer;
}

const char *format_pools(const json_t *object, const char *key, char buffer[static FORMAT_SIZE]) {
    json_t *pools = json_object_get(object, key), *permits;
    const char *pool;
    size_t n = 0;

    buffer[0] = '\0';
    json_object_foreach(pools, pool, permits)
        if (n < FORMAT_SIZE)
            n += (size_t) snprintf(buffer + n, FORMAT_SIZE - n, "%s%.64s:" INT, n > 0 ? " " : "", pool,
                                   json_integer_value(permits));
    return buffer;
}

const char *format_result(const json_t *object, const char *result, const char *code, const char *signal,
                         char buffer[static FORMAT_SIZE]) {
    const char *text = format_get_text(object, result);

    if (json_is_integer(json_object_get(object, signal)))
        snprintf(buffer, FORMAT_SIZE, "%.64s (signal " INT ")", text, format_get_number(object, signal));
    else if (format_get_number(object, code) != 0)
        snprintf(buffer, FORMAT_SIZE, "%.64s (exit " INT ")", text, format_get_number(object, code));
    else
        snprintf(buffer, FORMAT_SIZE, "%.64s", text);
    return buffer;
}

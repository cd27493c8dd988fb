/* SPDX-License-Identifier: MIT */

#include "base/schedule/civil.h"

#define DAY 86400
#define DAYS_OF_400_YEARS 146097
#define DAYS_TO_1970 719468 /* from 0000-03-01 */

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* Years that begin in March have the leap day at their end, and months whose lengths repeat: 153 days are
 * five months. */
int64_t civil_to_days(int64_t year, unsigned month, unsigned day) {
    int64_t y = month > 2 ? year : year - 1;
    int64_t era = floor_div(y, 400), of_era = y - era * 400;
    int64_t of_year = (153 * ((int64_t) month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * DAYS_OF_400_YEARS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_TO_1970;
}

static void set_date(int64_t days, struct civil *ret) {
    int64_t z = days + DAYS_TO_1970;
    int64_t era = floor_div(z, DAYS_OF_400_YEARS), of_era = z - era * DAYS_OF_400_YEARS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* 0: March */

    ret->day = (unsigned) (of_year - (153 * month + 2) / 5 + 1);
    ret->month = (unsigned) (month < 10 ? month + 3 : month - 9);
    ret->year = year + era * 400 + (ret->month <= 2);
}

void civil_from_seconds(int64_t local, struct civil *ret) {
    int64_t days = floor_div(local, DAY), of_day = local - days * DAY;

    set_date(days, ret);
    ret->hour = (unsigned) (of_day / 3600);
    ret->minute = (unsigned) (of_day / 60 % 60);
    ret->second = (unsigned) (of_day % 60);
}

int64_t civil_to_seconds(const struct civil *civil) {
    int64_t days = civil_to_days(civil->year, civil->month, civil->day);

    return days * DAY + civil->hour * 3600 + civil->minute * 60 + civil->second;
}

unsigned civil_month_length(int64_t year, unsigned month) {
    static const unsigned char lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return lengths[month - 1] + (month == 2 && is_leap);
}

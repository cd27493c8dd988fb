/* SPDX-License-Identifier: MIT */

/* Zone files: what is refused, and the offsets of all zones of this machine against libc's. */

#include "base/schedule/zone.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/number.h"
#include "base/schedule/schedule.h"
#include "tests/harness/test.h"
#include "tests/harness/tzif.h"

#define YEAR_1970 INT64_C(0)
#define YEAR_2040 INT64_C(2208988800)
#define CET "CET-1CEST,M3.5.0,M10.5.0/3"

static int parse(const struct tzif *tzif, struct zone **ret) {
    size_t size;
    _cleanup_free_ uint8_t *data = tzif_make(tzif, &size);

    return zone_parse(data, size, ret);
}

static struct zone *make(const struct tzif *tzif) {
    struct zone *zone = NULL;

    TEST_INT(parse(tzif, &zone), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(zone);
    return zone;
}

static void refuse(const struct tzif *tzif, int expected) {
    struct zone *zone = NULL;

    TEST_INT(parse(tzif, &zone), expected);
    CU_ASSERT_PTR_NULL(zone);
}

/* ---- files ---- */

static void test_made(void) {
    static const int64_t times[] = {-1000, 0, 86400, 1000000};
    static const int32_t offsets[] = {3600, 3600, 7200, -2670};
    struct tzif tzif = {.n_times = 4, .times = times, .offsets = offsets, .first_offset = 60};
    _cleanup_(zone_freep) struct zone *zone = make(&tzif);

    TEST_INT(zone_offset(zone, INT64_MIN), 60);
    TEST_INT(zone_offset(zone, -1001), 60);
    TEST_INT(zone_offset(zone, -1000), 3600);
    TEST_INT(zone_offset(zone, 86399), 3600);
    TEST_INT(zone_offset(zone, 86400), 7200);
    TEST_INT(zone_offset(zone, INT64_MAX), -2670);
    TEST_INT(zone_transition_after(zone, -1001), -1000);
    TEST_INT(zone_transition_after(zone, -1000), 86400); /* at 0 the offset stays */
    TEST_INT(zone_transition_after(zone, 1000000), INT64_MAX);
    TEST_INT(zone_transition_before(zone, -1001), INT64_MIN);
    TEST_INT(zone_transition_before(zone, 86399), -1000);
    TEST_INT(zone_transition_before(zone, 86400), 86400);
    CU_ASSERT(!zone_has_changed(zone));
}

static void test_refused(void) {
    static const int64_t backwards[] = {5000, 4999}, near[] = {5000, 8599}, apart[] = {5000, 8600};
    static const int32_t offsets[] = {3600, 7200}, far[] = {3600, 26 * 3600 + 1};
    static const char *const footers[] = {
        "CET",
        "C-1",
        "CET-25",
        "CET-1CEST",
        "CET-1CEST,M3.5.0",
        "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,J0,J366",
        "CET-1CEST,0,366",
        "CET-1CEST,M3.5.0/168,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0/3x",
        "<>-1",
        "<+01-1",
        "CET-1:60",
    };

    refuse(&(struct tzif){.version = '1'}, ZONE_E_INVALID);
    refuse(&(struct tzif){.leaps = 1}, ZONE_E_LEAP);
    refuse(&(struct tzif){.first_offset = -26 * 3600 - 1}, ZONE_E_INVALID);
    refuse(&(struct tzif){.n_times = 2, .times = backwards, .offsets = offsets}, ZONE_E_INVALID);
    refuse(&(struct tzif){.n_times = 2, .times = near, .offsets = offsets}, ZONE_E_INVALID);
    refuse(&(struct tzif){.n_times = 2, .times = apart, .offsets = far}, ZONE_E_INVALID);
    zone_free(make(&(struct tzif){.n_times = 2, .times = apart, .offsets = offsets}));
    for (size_t i = 0; i < ELEMENTSOF(footers); i++)
        refuse(&(struct tzif){.footer = footers[i]}, ZONE_E_INVALID);
}

/* A file that is cut anywhere is refused, and nothing behind its end is read (ASan). */
static void test_cut_off(void) {
    static const int64_t times[] = {5000, 90000};
    static const int32_t offsets[] = {3600, 7200};
    size_t size;
    _cleanup_free_ uint8_t *data =
        tzif_make(&(struct tzif){.n_times = 2, .times = times, .offsets = offsets, .footer = CET}, &size);

    for (size_t n = 0; n < size; n++) {
        _cleanup_free_ uint8_t *part = malloc(n + !n);
        struct zone *zone = NULL;

        CU_ASSERT_PTR_NOT_NULL_FATAL(part);
        memcpy(part, data, n);
        TEST_INT(zone_parse(part, n, &zone), ZONE_E_INVALID);
    }
}

static void test_too_large(void) {
    _cleanup_free_ uint8_t *many = calloc(1, ZONE_FILE_MAX + 1);
    size_t size, n = ZONE_TRANSITIONS_MAX;
    _cleanup_free_ uint8_t *head = tzif_make(&(struct tzif){}, &size);
    struct zone *zone = NULL;

    CU_ASSERT_PTR_NOT_NULL_FATAL(many);
    /* The second header begins behind the first block: 44 + 6 + 4 bytes. All times have type 0, so none is a
     * change. */
    for (size_t extra = 0; extra < 2; extra++) {
        memset(many, 0, ZONE_FILE_MAX);
        memcpy(many, head, 98);
        many[54 + 32 + 2] = (uint8_t) ((n + extra) >> 8);
        many[54 + 32 + 3] = (uint8_t) (n + extra);
        for (size_t i = 0; i < n + extra; i++) {
            many[98 + i * 8 + 6] = (uint8_t) (i >> 8);
            many[98 + i * 8 + 7] = (uint8_t) i;
        }
        memcpy(many + 98 + (n + extra) * 9, head + 98, size - 98);
        TEST_INT(zone_parse(many, 98 + (n + extra) * 9 + size - 98, &zone), extra ? ZONE_E_INVALID : 0);
    }
    zone_free(zone);
    zone = NULL;
    memcpy(many, head, size);
    TEST_INT(zone_parse(many, ZONE_FILE_MAX + 1, &zone), ZONE_E_INVALID);
    TEST_INT(zone_parse(many, ZONE_FILE_MAX, &zone), 0);
    zone_free(zone);
}

/* ---- rules in the footer ---- */

static void expect_changes(const char *footer, int64_t from, const char *expected) {
    _cleanup_(zone_freep) struct zone *zone = make(&(struct tzif){.footer = footer});
    char text[256], one[SCHEDULE_TEXT_SIZE];

    for (int i = 0; i < 2; i++) {
        from = zone_transition_after(zone, from);
        snprintf(text + i * 26, sizeof(text) - 52, "%s ",
                 from == INT64_MAX ? "never" : schedule_format(zone, from, one));
    }
    TEST_STRING(text, expected);
}

static void test_rules(void) {
    int64_t y2027 = 1798761600;

    expect_changes(CET, y2027, "2027-03-28T03:00:00+02:00 2027-10-31T02:00:00+01:00 ");
    expect_changes("<-04>4<-03>,M9.1.6/24,M4.1.6/24", y2027,
                   "2027-04-03T23:00:00-04:00 2027-09-05T01:00:00-03:00 ");
    expect_changes("EET-2EEST,J60/0,J300/0", y2027 + 366 * 86400,
                   "2028-03-01T01:00:00+03:00 2028-10-26T23:00:00+02:00 ");
    expect_changes("EET-2EEST,59/0,299/0", y2027 + 366 * 86400,
                   "2028-02-29T01:00:00+03:00 2028-10-25T23:00:00+02:00 ");
    expect_changes("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", y2027,
                   "2027-03-28T00:00:00-01:00 2027-10-30T23:00:00-02:00 ");
    expect_changes("IST-1GMT0,M10.5.0,M3.5.0/1", y2027,
                   "2027-03-28T02:00:00+01:00 2027-10-31T01:00:00+00:00 ");
}

static void test_rule_without_changes(void) {
    _cleanup_(zone_freep) struct zone *fixed =
        make(&(struct tzif){.footer = "<+0530>-5:30", .first_offset = 1});
    /* Summer that ends when it begins: RFC 9636, 3.3.1. */
    _cleanup_(zone_freep) struct zone *summer = make(&(struct tzif){.footer = "EST5EDT,0/0,J365/25"});

    TEST_INT(zone_offset(fixed, 0), 19800);
    TEST_INT(zone_transition_after(fixed, INT64_MIN), INT64_MAX);
    TEST_INT(zone_offset(summer, 1800000000), -4 * 3600);
    TEST_INT(zone_transition_after(summer, 0), INT64_MAX);
}

/* ---- all zones of this machine ---- */

struct walk {
    char folder[256];
    unsigned n_instants; /* random ones of each zone */
    int64_t changes_until;
    size_t n_zones, n_compared, n_different;
};

static void compare(struct walk *walk, const struct zone *zone, const char *name, int64_t t) {
    time_t at = (time_t) t;
    struct tm local;

    walk->n_compared++;
    if (localtime_r(&at, &local) && local.tm_gmtoff == zone_offset(zone, t))
        return;
    if (walk->n_different++ < 20)
        printf("%s at %lld: %d, libc has %ld\n", name, (long long) t, zone_offset(zone, t), local.tm_gmtoff);
}

static void compare_zone(struct walk *walk, const struct zone *zone, const char *name) {
    char variable[600];

    snprintf(variable, sizeof(variable), ":%s/%s", ZONE_DIRECTORY, name);
    setenv("TZ", variable, 1);
    tzset();
    for (unsigned i = 0; i < walk->n_instants; i++)
        compare(walk, zone, name,
                YEAR_1970 + (int64_t) ((uint64_t) random() << 31 | (uint64_t) random()) % SCHEDULE_END);
    for (int64_t t = YEAR_1970 - 1; (t = zone_transition_after(zone, t)) < walk->changes_until;)
        for (int k = -1; k <= 1; k++)
            compare(walk, zone, name, t + k);
}

static int visit(const char *entry, void *userdata) {
    struct walk *walk = userdata;
    char before[sizeof(walk->folder)], name[520], path[640];
    struct zone *zone = NULL;
    struct stat st;
    int r;

    snprintf(name, sizeof(name), "%s%s", walk->folder, entry);
    snprintf(path, sizeof(path), "%s/%s", ZONE_DIRECTORY, name);
    if (stat(path, &st) < 0 || strcmp(name, "right") == 0 || strcmp(name, "posix") == 0)
        return 0;
    if (S_ISDIR(st.st_mode)) {
        memcpy(before, walk->folder, sizeof(before));
        snprintf(walk->folder, sizeof(walk->folder), "%.250s/", name);
        r = directory_each(path, visit, walk);
        memcpy(walk->folder, before, sizeof(before));
        return r;
    }
    if (strchr(entry, '.') || entry[0] == '+' || strcmp(entry, "leapseconds") == 0 ||
        strcmp(entry, "SECURITY") == 0)
        return 0;
    TEST_INT(zone_load(ZONE_DIRECTORY, name, &zone), 0);
    if (zone) {
        walk->n_zones++;
        compare_zone(walk, zone, name);
        zone_free(zone);
    } else {
        printf("%s\n", name);
    }
    return 0;
}

/* BERTH_TEST_ZONES=N compares N random instants of each zone, and all changes up to 2400. */
static void test_against_libc(void) {
    const char *text = getenv("BERTH_TEST_ZONES");
    struct walk walk = {.n_instants = 50, .changes_until = YEAR_2040};
    _cleanup_free_ char *before = NULL;
    uint64_t n;

    if (text && number_parse(text, 1000000, &n) == 0) {
        walk.n_instants = (unsigned) n;
        walk.changes_until = SCHEDULE_END;
    }
    before = getenv("TZ") ? strdup(getenv("TZ")) : NULL;
    srandom(1);
    TEST_INT(directory_each(ZONE_DIRECTORY, visit, &walk), 0);
    if (before)
        setenv("TZ", before, 1);
    else
        unsetenv("TZ");
    tzset();
    TEST_INT(walk.n_different, 0);
    CU_ASSERT(walk.n_zones > 400);
    if (text)
        printf("%zu zones, %zu instants\n", walk.n_zones, walk.n_compared);
}

/* ---- loading ---- */

static void test_load(void) {
    static const char *const unknown[] = {"Europe/Nowhere", "Europe",          "../etc/passwd",  "",
                                          "/etc/localtime", "Europe/Berlin/x", "Europe/Berlin ", "zone.tab"};
    struct zone *zone = NULL;

    for (size_t i = 0; i < ELEMENTSOF(unknown); i++)
        TEST_INT(zone_load(ZONE_DIRECTORY, unknown[i], &zone), ZONE_E_UNKNOWN);
    TEST_INT(zone_load("/nowhere", "UTC", &zone), 0);
    TEST_INT(zone_offset(zone, 0), 0);
    zone = zone_free(zone);
    TEST_INT(zone_load("/nowhere", "local", &zone), 0);
    zone_free(zone);
    if (access(ZONE_DIRECTORY "/right/UTC", F_OK) == 0)
        TEST_INT(zone_load(ZONE_DIRECTORY, "right/UTC", &zone), ZONE_E_LEAP);
}

static void test_changed(void) {
    char folder[] = "/tmp/berth-zone-XXXXXX", path[64];
    struct stat st;
    size_t size;
    _cleanup_free_ uint8_t *data = tzif_make(&(struct tzif){.footer = CET}, &size);
    _cleanup_(zone_freep) struct zone *zone = NULL;

    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/Zone", folder);
    TEST_INT(file_write_atomic(path, data, size, 0600), 0);
    TEST_INT(zone_load(folder, "Zone", &zone), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(zone);
    CU_ASSERT(!zone_has_changed(zone));
    TEST_INT(stat(path, &st), 0);
    TEST_INT(file_write_atomic(path, data, size, 0600), 0);
    TEST_INT(utimensat(AT_FDCWD, path, (struct timespec[]){st.st_atim, st.st_mtim}, 0), 0); /* another inode alone */
    CU_ASSERT(zone_has_changed(zone));
    zone = zone_free(zone);
    TEST_INT(zone_load(folder, "Zone", &zone), 0);
    CU_ASSERT(!zone_has_changed(zone));
    unlink(path);
    CU_ASSERT(zone_has_changed(zone));
    rmdir(folder);
}

static CU_TestInfo tests[] = {
    {"made", test_made},
    {"refused", test_refused},
    {"cut-off", test_cut_off},
    {"too-large", test_too_large},
    {"rules", test_rules},
    {"rule-without-changes", test_rule_without_changes},
    {"against-libc", test_against_libc},
    {"load", test_load},
    {"changed", test_changed},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "zone", .pTests = tests});

/* SPDX-License-Identifier: MIT */

/* units/berth.catalog has one entry for each row of base/journal/events.def, and no other. */

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/journal/event.h"
#include "tests/harness/test.h"

#define CATALOG "units/berth.catalog"
#define CATALOG_MAX (1024 * 1024)

struct entry {
    char *name;       /* the comment in front of it */
    char *message_id;
    char *header;     /* up to the empty line */
    char *text;
};

static size_t parse(char *catalog, struct entry *entries, size_t max) {
    char *comment = NULL, *line;
    size_t n = 0;

    while (n < max && (line = strsep(&catalog, "\n")))
        if (strncmp(line, "# ", 2) == 0) {
            comment = line + 2;
        } else if (strncmp(line, "-- ", 3) == 0) {
            entries[n] = (struct entry){.name = comment, .message_id = line + 3, .header = catalog};
            catalog = catalog ? strstr(catalog, "\n\n") : NULL;
            if (!catalog)
                break;
            *catalog = '\0';
            catalog += 2;
            entries[n++].text = catalog;
        }
    return n;
}

static char *read_catalog(void) {
    char *text = NULL;
    size_t size;

    TEST_INT(file_read(CATALOG, CATALOG_MAX, &text, &size), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    return text;
}

static void test_every_event(void) {
    _cleanup_free_ char *text = read_catalog();
    struct entry entries[EVENT_TYPES + 1] = {};

    TEST_INT(parse(text, entries, EVENT_TYPES + 1), EVENT_TYPES);
    for (unsigned i = 0; i < EVENT_TYPES; i++) {
        TEST_STRING(entries[i].name, event_name(i));
        TEST_STRING(entries[i].message_id, event_message_id(i));
    }
}

static void test_headers(void) {
    _cleanup_free_ char *text = read_catalog();
    struct entry entries[EVENT_TYPES + 1] = {};
    size_t n = parse(text, entries, EVENT_TYPES + 1);

    for (size_t i = 0; i < n; i++) {
        CU_ASSERT(strncmp(entries[i].header, "Subject: ", 9) == 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(entries[i].header, "\nDefined-By: berth\n"));
        CU_ASSERT_PTR_NOT_NULL(strstr(entries[i].header, "\nDocumentation: man:berth"));
        CU_ASSERT(entries[i].text[0] != '\n' && entries[i].text[0] != '\0');
    }
}

/* journalctl leaves @NAME@ as it is where the entry has no such field: a misspelt one would be seen by users. */
static void test_fields(void) {
    static const char *const known[] = {"BERTH_JOB",  "BERTH_RUN",       "BERTH_POOLS",  "BERTH_TOKEN",
                                        "BERTH_HOST", "BERTH_NAMESPACE", "BERTH_RESULT", "BERTH_REASON",
                                        "BERTH_ATTEMPT", "BERTH_ATTEMPTS", "BERTH_DELAY_MS",
                                        "BERTH_DUE",  "BERTH_UNTIL",     "BERTH_COUNT",  "BERTH_OTHER_RUN",
                                        "BERTH_STEP_MS", "BERTH_OTHER_HOST", "BERTH_REDIS",
                                        "BERTH_HEAD_START_MS", "BERTH_UID", "BERTH_METHOD"};
    _cleanup_free_ char *text = read_catalog();
    char *begin = strstr(text, "\n-- "), *end;
    size_t n = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(begin);
    for (; (begin = strchr(begin, '@')) && (end = strchr(begin + 1, '@')); begin = end + 1, n++) {
        bool found = false;

        *end = '\0';
        for (size_t i = 0; i < ELEMENTSOF(known); i++)
            found |= strcmp(begin + 1, known[i]) == 0;
        TEST_STRING(found ? "a field" : begin + 1, "a field");
    }
    CU_ASSERT(n > 0);
}

static CU_TestInfo tests[] = {
    {"an entry for each event, in order", test_every_event},
    {"headers and text", test_headers},
    {"fields", test_fields},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "catalog", .pTests = tests});

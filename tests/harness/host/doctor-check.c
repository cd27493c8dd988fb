/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/doctor-check.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"

struct facts doctor_facts;
struct report doctor_findings;

void check_begin(void) {
    doctor_facts = (struct facts) {.root = "/nonexistent", .now = (usec_t) 1763640000 * USEC_PER_SEC};
}

void check_set(json_t **reply, const char *json) {
    _cleanup_free_ char *text = strdup(json);

    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_decref(*reply);
    *reply = json_loads(text, 0, NULL);
    if (!*reply)
        printf("no JSON: %s\n", text);
    CU_ASSERT_FATAL(*reply != NULL);
}

static void run(void (*check)(const struct facts *f, struct report *r)) {
    report_done(&doctor_findings);
    doctor_findings.check = "it";
    check(&doctor_facts, &doctor_findings);
}

void check_finds(void (*check)(const struct facts *f, struct report *r), enum severity severity,
                 const char *text) {
    run(check);
    CU_ASSERT_FATAL(doctor_findings.n == 1);
    TEST_INT(doctor_findings.items[0].severity, severity);
    if (strncmp(doctor_findings.items[0].text, text, strlen(text)) != 0)
        TEST_STRING(doctor_findings.items[0].text, text);
}

void check_finds_nothing(void (*check)(const struct facts *f, struct report *r)) {
    run(check);
    if (doctor_findings.n > 0)
        TEST_STRING(doctor_findings.items[0].text, "");
}

void check_done(void) {
    report_done(&doctor_findings);
    facts_done(&doctor_facts);
}

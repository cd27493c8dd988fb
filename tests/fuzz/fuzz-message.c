/* SPDX-License-Identifier: MIT */

/* Messages between berthd, runner and guards, and records and reports on disk. What is one can be written again. */

#include <string.h>

#include "base/protocol.h"
#include "runner/guard-file.h"
#include "tests/fuzz/fuzz.h"

static int check_fact(const char *variable, const char *value, void *userdata) {
    FUZZ_ASSERT(strncmp(variable, "BERTH_", 6) == 0 && strlen(value) < FACTS_SIZE);
    ++*(size_t *) userdata;
    return 0;
}

static void write_again(const struct message *m) {
    static struct message_writer w;
    static struct message again;

    message_begin(&w, m->verb);
    for (size_t i = 0; i < m->n_fields; i++)
        message_put(&w, m->fields[i].key, m->fields[i].value);
    FUZZ_ASSERT(w.error == 0);
    FUZZ_ASSERT(message_parse(&again, w.text, w.size) == 0);
    FUZZ_ASSERT(again.n_fields == m->n_fields && strcmp(again.verb, m->verb) == 0);
    for (size_t i = 0; i < m->n_fields; i++)
        FUZZ_ASSERT(strcmp(message_get(&again, m->fields[i].key), m->fields[i].value) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct message m;
    static struct guard_file record;
    static struct message_writer w;
    char id[ID_TEXT_SIZE], name[NAME_MAX_LENGTH + 1];
    size_t n_facts = 0;
    uint64_t number;

    if (message_parse(&m, data, size) < 0)
        return 0;
    write_again(&m);
    (void) message_get_u64(&m, "deadline", &number);
    if (message_get_id(&m, "run", id) == 0)
        FUZZ_ASSERT(strlen(id) == ID_TEXT_SIZE - 1);
    if (message_get_name(&m, "job", name) == 0)
        FUZZ_ASSERT(name_is_valid(name));
    if (guard_file_parse(&record, &m) == 0) {
        message_begin(&w, PROTOCOL_STATE);
        guard_file_put(&record, &w);
        FUZZ_ASSERT(w.error == 0);
        (void) facts_each(&record.facts, check_fact, &n_facts);
        FUZZ_ASSERT(n_facts <= m.n_fields);
    }
    return 0;
}

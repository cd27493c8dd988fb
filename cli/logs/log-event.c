/* SPDX-License-Identifier: MIT */
#include "cli/logs/log-event.h"

#include <errno.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "cli/verbs.h"
#include "cli/watch/event-line.h"

static const char *const shown[] = {"BERTH_RESULT", "BERTH_EXIT_CODE", "BERTH_SIGNAL", "BERTH_POSITION",
                                    "BERTH_RUN_MS", "BERTH_WAIT_MS",   "BERTH_REASON"};

static int add_fields(json_t *fields, struct journal_reader *reader) {
    int k = 0;

    for (size_t i = 0; i < ELEMENTSOF(shown) && k >= 0; i++) {
        _cleanup_free_ char *value = NULL;

        k = journal_reader_get(reader, shown[i], &value);
        if (k >= 0 && value)
            (void) json_object_set_new(fields, shown[i], json_string(value)); /* fails if it is no UTF-8: not from berthd */
    }
    return k;
}

int log_event_print(FILE *f, struct journal_reader *reader, const char *event) {
    _cleanup_json_ json_t *fields = json_object(), *whole = NULL, *line = NULL;
    int k = fields ? add_fields(fields, reader) : -ENOMEM;

    if (k < 0)
        return k;
    whole = json_pack("{s:s, s:O}", "event", event, "fields", fields);
    line = whole ? event_line_to_json(whole) : NULL;
    if (!line)
        return -ENOMEM;
    fputs("-- ", f);
    event_line_print_short(f, line);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "runner/report.h"

#include "base/file.h"
#include "base/protocol.h"

void report_begin(struct message_writer *w, const struct guard_file *r, const char *reason) {
    message_begin(w, PROTOCOL_REPORT);
    guard_file_put(r, w);
    message_put_u64(w, "ended", clock_realtime());
    message_put(w, "reason", reason);
}

int report_write(const struct message_writer *w, const char *directory, const char *run) {
    char path[GUARD_FILE_PATH_SIZE];

    if (w->error < 0)
        return w->error;
    return file_write_durable(guard_file_path(path, directory, run, PROTOCOL_REPORT_SUFFIX), w->text, w->size, 0600);
}

int report_load(struct message_writer *ret, const char *directory, const char *run) {
    char path[GUARD_FILE_PATH_SIZE];
    struct message m;
    int k = guard_file_load_message(&m, guard_file_path(path, directory, run, PROTOCOL_REPORT_SUFFIX), PROTOCOL_REPORT);

    if (k < 0)
        return k;
    message_begin(ret, PROTOCOL_REPORT);
    for (size_t i = 0; i < m.n_fields; i++)
        message_put(ret, m.fields[i].key, m.fields[i].value);
    return ret->error;
}

/* SPDX-License-Identifier: MIT */
#include "runner/report.h"

#include <signal.h>

#include "base/file.h"
#include "base/protocol.h"

void report_begin(struct message_writer *w, const struct guard_file *r, const char *reason) {
    message_begin(w, PROTOCOL_REPORT);
    guard_file_put(r, w);
    message_put_u64(w, "ended", clock_realtime());
    message_put(w, "reason", reason);
}

void report_put_failure(struct message_writer *w, int error, const char *stage, const char *text) {
    message_put_u64(w, "errno", (uint64_t) error);
    message_put(w, "stage", stage);
    if (*text)
        message_put_text(w, "text", text);
}

static void put_usage(struct message_writer *w, const struct rusage *usage) {
    message_put_u64(w, "user-usec", (uint64_t) usage->ru_utime.tv_sec * USEC_PER_SEC + (uint64_t) usage->ru_utime.tv_usec);
    message_put_u64(w, "system-usec", (uint64_t) usage->ru_stime.tv_sec * USEC_PER_SEC + (uint64_t) usage->ru_stime.tv_usec);
    message_put_u64(w, "maxrss-kib", (uint64_t) usage->ru_maxrss);
}

void report_put_result(struct message_writer *w, const struct supervise_result *result) {
    message_put_u64(w, "started", result->started);
    message_put_u64(w, "ended-boot", result->ended);
    message_put_u64(w, result->code == CLD_EXITED ? "code" : "signal", (uint64_t) result->status);
    if (result->deadline != USEC_INFINITY)
        message_put_u64(w, "gone-before", usec_sub(result->deadline, result->ended));
    if (result->ended > result->deadline)
        message_put_u64(w, "gone-after", usec_sub(result->ended, result->deadline));
    put_usage(w, &result->usage);
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

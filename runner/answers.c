/* SPDX-License-Identifier: MIT */
#include "runner/answers.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/protocol.h"

void answer_hello(struct berthd_link *berthd) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_HELLO);
    message_put_u64(&w, "version", PROTOCOL_VERSION);
    message_put_u64(&w, "pid", (uint64_t) getpid());
    berthd_link_send(berthd, &w);
}

void answer_run(struct berthd_link *berthd, const char *verb, const char *run) {
    struct message_writer w;

    message_begin(&w, verb);
    message_put(&w, "run", run);
    berthd_link_send(berthd, &w);
}

void answer_refused(struct berthd_link *berthd, const char *run, const char *reason, const char *text) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_REFUSED);
    message_put(&w, "run", run);
    message_put(&w, "reason", reason);
    message_put_text(&w, "text", text);
    berthd_link_send(berthd, &w);
}

void answer_lost(struct berthd_link *berthd, const char *run, const char *killed) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_REPORT);
    message_put(&w, "run", run);
    message_put_u64(&w, "ended", clock_realtime());
    message_put(&w, "reason", "none");
    message_put(&w, "lost", "1");
    if (killed)
        message_put(&w, "killed", killed);
    berthd_link_send(berthd, &w);
}

void answer_not_begun(struct berthd_link *berthd, const char *run) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_REPORT);
    message_put(&w, "run", run);
    message_put_u64(&w, "ended", clock_realtime());
    message_put(&w, "reason", "none");
    message_put_u64(&w, "errno", ECANCELED);
    message_put(&w, "stage", "stop");
    message_put(&w, "text", "its guard was killed before it began the command");
    berthd_link_send(berthd, &w);
}

void answer_stuck(struct berthd_link *berthd, const char *run, const char *what) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_STUCK);
    message_put(&w, "run", run);
    message_put_text(&w, "text", what);
    berthd_link_send(berthd, &w);
}

void answer_recovered(struct berthd_link *berthd) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_RECOVERED);
    berthd_link_send(berthd, &w);
}

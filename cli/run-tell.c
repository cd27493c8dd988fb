/* SPDX-License-Identifier: MIT */
/* How the command ended, for berthd's journal. On a connection on which berthd has answered it is said, and that is all. Where berthd is
 * away the hold is kept meanwhile: as long as it is open the next berthd does not decide by itself that nobody knows. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/run-adhoc.h"

#define TELL_MAX (3 * USEC_PER_SEC) /* REFERENCE: Exit status; more than berthd.service's RestartSec= */

static int put_ended(json_t *params, const struct supervise_result *ended) {
    int r = json_object_set_new(params, ended->code == CLD_EXITED ? "code" : "signal", json_integer(ended->status));

    r |= json_object_set_new(params, "ended_usec", json_integer((json_int_t) ended->ended));
    if (ended->deadline != USEC_INFINITY)
        r |= json_object_set_new(params, "until_usec", json_integer((json_int_t) ended->deadline));
    return r;
}

int adhoc_tell(struct adhoc *a) {
    return client_send(a->client, "io.berth.Ended", json_incref(a->ended), CLIENT_ONEWAY);
}

/* That berthd answers says that it has our connection, and with it what was said on that. */
void adhoc_told(struct adhoc *a, const char *error) {
    if (!error || strcmp(error, "io.berth.NoSuchRun") == 0)
        adhoc_exit(a, a->status);
    else
        adhoc_talk_again(a); /* one that is about to stop, or cannot start */
}

static int tell_on_limit(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    struct adhoc *a = userdata;

    if (a->options.verbose)
        fputs("berth: berthd is still away: it will not know how the command ended\n", stderr);
    adhoc_exit(a, a->status);
    return 0;
}

static int tell_later(struct adhoc *a) {
    int r = sd_event_add_time_relative(a->event, &a->tell_limit, CLOCK_BOOTTIME, TELL_MAX, 0, tell_on_limit, a);

    if (r < 0)
        return r;
    a->phase = ADHOC_PHASE_TELLING;
    if (!a->client)
        r = adhoc_talk_connect(a); /* now, not when the next try is due */
    else
        r = adhoc_tell(a); /* it waits for berthd; so do these words, also when we cannot wait any more */
    if (r < 0)
        adhoc_talk_again(a);
    return 0;
}

void adhoc_end(struct adhoc *a, int status, const struct supervise_result *ended, const char *result) {
    a->status = status;
    a->ended = a->nested ? NULL : json_pack("{s:s, s:s?}", "run", a->run, "result", result);
    if (a->ended && ended)
        (void) put_ended(a->ended, ended);
    if (!a->ended || (a->client && a->away_since == 0 && adhoc_tell(a) == 0) || tell_later(a) < 0)
        adhoc_exit(a, status);
}

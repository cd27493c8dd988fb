/* SPDX-License-Identifier: MIT */
/* Calls to berthd that wait for the reply as long as berthd is alive. If berthd sends nothing for a while, a
 * second connection probes it (org.varlink.service.GetInfo, which berthd answers at once). So a reload, a
 * slow Redis and `--wait` may take long, but a hung berthd blocks nobody. */
#include <errno.h>
#include <poll.h>

#include "cli/client.h"

#define CONNECT_AGAIN 10 /* ms */

static usec_t quiet_time = CLIENT_QUIET_TIME, answer_time = CLIENT_ANSWER_TIME;

void client_set_patience(usec_t quiet_usec, usec_t answer_usec) {
    quiet_time = quiet_usec;
    answer_time = answer_usec;
}

/* A full listen queue is EAGAIN of connect(2) for Unix sockets, which poll() cannot wait for. */
int client_connect_patiently(struct client **ret) {
    usec_t until = usec_add(clock_boottime(), answer_time);
    int r;

    while ((r = client_connect(ret)) == -EAGAIN && clock_boottime() < until)
        (void) poll(NULL, 0, CONNECT_AGAIN);
    return r;
}

/* Returns 0 if berthd is alive, -ETIMEDOUT if it does not answer, or another negative errno. */
static int client_probe(void) {
    _cleanup_(client_freep) struct client *c = NULL;
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    usec_t until = usec_add(clock_boottime(), answer_time);
    int r = client_connect_patiently(&c);

    if (r == 0)
        r = client_send(c, "org.varlink.service.GetInfo", NULL, 0);
    if (r == 0)
        r = client_receive_until(c, &reply, until);
    return r;
}

int client_receive_before(struct client *c, struct client_reply *ret, usec_t until) {
    bool had_begun = client_has_begun(c);

    for (;;) {
        usec_t quiet = usec_add(clock_boottime(), had_begun ? answer_time : quiet_time);
        int r = client_receive_until(c, ret, quiet < until ? quiet : until);

        if (r == -ETIMEDOUT && clock_boottime() >= until)
            return -ETIME;
        if (r != -ETIMEDOUT || had_begun)
            return r;
        had_begun = client_has_begun(c);
        r = had_begun ? 0 : client_probe();
        if (r < 0) {
            int late = client_receive_until(c, ret, 0); /* the reply may have come since */

            return late == -ETIMEDOUT ? r : late;
        }
    }
}

int client_receive(struct client *c, struct client_reply *ret) {
    return client_receive_before(c, ret, USEC_INFINITY);
}

int client_ask(const char *method, json_t *params, struct client_reply *ret) {
    _cleanup_(client_freep) struct client *c = NULL;
    int r = client_connect_patiently(&c);

    if (r < 0)
        json_decref(params);
    else
        r = client_send(c, method, params, 0);
    if (r == 0 || r == -ECONNRESET) /* berthd may have sent an error before it closed */
        r = c ? client_receive(c, ret) : r;
    return r;
}

int client_call(const char *method, json_t *params, json_t **ret) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    int r = client_ask(method, params, &reply);

    if (r < 0)
        return client_explain_errno(r);
    if (reply.error)
        return client_explain(&reply);
    if (ret)
        *ret = json_incref(reply.params);
    return 0;
}

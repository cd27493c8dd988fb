/* SPDX-License-Identifier: MIT */

/* Move: answered when Redis, or the store of this host, has moved the claim. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/verbs-internal.h"

struct mover { /* one such call */
    struct manager *manager;
    struct control_call *call; /* NULL: the client has gone; the move goes on */
    struct store_move move;
};

static void mover_on_gone(_unused_ struct control_call *call, void *userdata) {
    struct mover *mover = userdata;

    mover->call = NULL;
}

static json_t *pack(const struct store_move *move) {
    json_t *places = json_array(), *passed = json_array();

    for (size_t i = 0; i < move->n_places; i++)
        (void) json_array_append_new(places, json_pack("{s:s, s:i, s:i}", "pool", move->places[i].pool, "place", (int) move->places[i].place,
                                                       "passed", (int) move->places[i].passed));
    for (size_t i = 0; i < move->n_passed; i++)
        (void) json_array_append_new(passed, json_pack("{s:s, s:s}", "host", move->passed[i].host, "name", move->passed[i].name));
    return json_pack("{s:i, s:s, s:s, s:s, s:b, s:I, s:b, s:b, s:o, s:o}", "schema", 1, "claim", move->claim, "host", move->host, "name",
                     move->name, "moved", move->number > 0, "head_start_ms", (json_int_t) (move->head_start_usec / USEC_PER_MSEC), "granted",
                     move->is_held, "parked", move->is_parked, "places", places, "passed", passed);
}

static int answer(struct mover *mover, int r) {
    struct control_call *call = mover->call;
    char why[VERBS_AWAY_SIZE];

    switch (r) {
    case 0:
        return control_call_answer(call, pack(&mover->move));
    case STORE_E_UNKNOWN:
        return verbs_no_such_claim(call, mover->move.about);
    case STORE_E_HELD:
        return verbs_bad_request(call, "%.8s holds its permits already, so it waits in no queue",
                                 mover->move.about);
    case STORE_E_APART:
        return verbs_bad_request(call, "%.8s and %.8s have no queue in common", mover->move.claim,
                                 mover->move.before);
    case -EAGAIN:
        return verbs_error(call, "io.berth.Away",
                           "Redis is in a grace period, so hosts may not have reported all claims: nothing "
                           "was moved");
    case -EREMOTEIO:
        return verbs_error(call, "io.berth.Away",
                           "Redis did not answer and may have moved the claim: `berth explain` shows its "
                           "place");
    case -ENOTCONN:
    case -ETIMEDOUT:
        return verbs_error(call, "io.berth.Away", "%s: nothing was moved",
                           verbs_explain_away(mover->manager, why));
    default:
        return verbs_error(call, "io.berth.Internal", "%s", strerror(r < 0 ? -r : EPROTO));
    }
}

static void mover_on_reply(int r, void *userdata) {
    struct mover *mover = userdata;

    if (mover->call)
        (void) answer(mover, r);
    free(mover);
}

/* Returns 0 or VERBS_ANSWERED. */
static int read_kind(struct control_call *call, const char *kind, bool has_by, struct store_move *move) {
    if (strcmp(kind, "first") == 0 && !has_by && !move->before[0])
        move->kind = STORE_MOVE_FIRST;
    else if (strcmp(kind, "before") == 0 && !has_by && move->before[0])
        move->kind = STORE_MOVE_BEFORE;
    else if (strcmp(kind, "by") == 0 && has_by && !move->before[0])
        move->kind = STORE_MOVE_BY;
    else {
        (void) verbs_bad_request(call, "kind is first, before (with before) or by (with by_ms)");
        return VERBS_ANSWERED;
    }
    return 0;
}

int verbs_move(struct control_call *call, json_t *params, void *userdata) {
    const char *claim = NULL, *kind = NULL, *before = NULL, *reason = NULL;
    json_int_t by_ms = 0;
    struct mover *mover;
    const struct param table[] = {
        {"claim", PARAM_STRING, true, &claim, 0, 0},
        {"kind", PARAM_STRING, true, &kind, 0, 0},
        {"before", PARAM_STRING, false, &before, 0, 0},
        {"by_ms", PARAM_INT, false, &by_ms, -VERBS_MSEC_MAX, VERBS_MSEC_MAX},
        {"reason", PARAM_STRING, false, &reason, 0, 0},
    };
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    if (params_check_run(call, claim) != 0 || params_check_run(call, before) != 0 ||
        params_check_reason(call, reason) != 0)
        return 0;
    mover = calloc(1, sizeof(*mover));
    if (!mover)
        return -ENOMEM;
    mover->manager = userdata;
    mover->call = call;
    mover->move.by_usec = by_ms * (int64_t) USEC_PER_MSEC;
    (void) snprintf(mover->move.claim, sizeof(mover->move.claim), "%s", claim);
    (void) snprintf(mover->move.about, sizeof(mover->move.about), "%s", claim);
    (void) snprintf(mover->move.before, sizeof(mover->move.before), "%s", before ? before : "");
    if (read_kind(call, kind, json_is_integer(json_object_get(params, "by_ms")), &mover->move) != 0) {
        free(mover);
        return 0;
    }
    k = manager_move(userdata, &mover->move,
                     &(struct manager_asker) {control_call_peer(call)->uid, verbs_on_behalf(params), reason}, mover_on_reply, mover);
    if (k == 0) {
        control_call_keep(call, mover_on_gone, mover);
        return 0;
    }
    if (k == MANAGER_E_UNKNOWN)
        k = verbs_no_such_claim(call, claim);
    else
        k = verbs_refused(call, k);
    free(mover);
    return k;
}

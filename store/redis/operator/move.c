/* SPDX-License-Identifier: MIT */
#include "store/redis/operator/move.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RESULT_MAX (3 * 315360000000000) /* µs: more than 3650 days of the claim's own head start and 3650 by moves */

void move_add(struct redis_command *command, const struct store_move *move) {
    static const char *const kinds[] = {
        [STORE_MOVE_FIRST] = "first", [STORE_MOVE_BEFORE] = "before", [STORE_MOVE_BY] = "by"};
    char by[24];

    (void) snprintf(by, sizeof(by), "%" PRId64, move->by_usec);
    command_add(command, move->claim);
    command_add(command, kinds[move->kind]);
    command_add(command, move->kind == STORE_MOVE_BEFORE ? move->before : by);
}

static int place_parse(const struct redisReply *item, struct store_place *ret) {
    enum { POOL, PLACE, PASSED };

    if (reply_copy(reply_at(item, POOL), ret->pool, sizeof(ret->pool)) < 0 || reply_u32(reply_at(item, PLACE), &ret->place) < 0)
        return -EBADMSG;
    return reply_u32(reply_at(item, PASSED), &ret->passed);
}

static int passed_parse(const struct redisReply *item, struct store_passed *ret) {
    enum { HOST, NAME };

    if (reply_copy(reply_at(item, HOST), ret->host, sizeof(ret->host)) < 0)
        return -EBADMSG;
    return reply_copy(reply_at(item, NAME), ret->name, sizeof(ret->name));
}

static int answer_parse(const struct redisReply *reply, struct store_move *ret) {
    enum { NUMBER = 3, STATE, TICKET, HEAD_START, HOST, NAME, POOLS, PLACES, PASSED };
    const struct redisReply *places = reply_at(reply, PLACES), *passed = reply_at(reply, PASSED);
    const char *state = reply_text(reply_at(reply, STATE));

    if (!state || reply_u64(reply_at(reply, NUMBER), &ret->number) < 0 || reply_u64(reply_at(reply, TICKET), &ret->ticket) < 0 ||
        reply_u64(reply_at(reply, HEAD_START), &ret->head_start_usec) < 0 || ret->head_start_usec > RESULT_MAX ||
        reply_copy(reply_at(reply, HOST), ret->host, sizeof(ret->host)) < 0 ||
        reply_copy(reply_at(reply, NAME), ret->name, sizeof(ret->name)) < 0 ||
        reply_copy(reply_at(reply, POOLS), ret->pools, sizeof(ret->pools)) < 0)
        return -EBADMSG;
    ret->is_parked = strcmp(state, "P") == 0;
    ret->is_held = strcmp(state, "H") == 0;
    for (ret->n_places = 0; reply_at(places, ret->n_places); ret->n_places++)
        if (ret->n_places == DEMAND_POOLS_MAX || place_parse(reply_at(places, ret->n_places), &ret->places[ret->n_places]) < 0)
            return -EBADMSG;
    for (ret->n_passed = 0; reply_at(passed, ret->n_passed); ret->n_passed++)
        if (ret->n_passed == STORE_PASSED_MAX || passed_parse(reply_at(passed, ret->n_passed), &ret->passed[ret->n_passed]) < 0)
            return -EBADMSG;
    return 0;
}

int move_reply_parse(const struct redisReply *reply, struct store_move *ret) {
    enum { ANSWER, CLAIM = 2 };
    const char *answer = reply_text(reply_at(reply, ANSWER));

    if (!answer)
        return -EBADMSG;
    if (strcmp(answer, "ok") == 0)
        return answer_parse(reply, ret);
    if (strcmp(answer, "grace") == 0)
        return -EAGAIN;
    if (strcmp(answer, "apart") == 0)
        return STORE_E_APART;
    if (reply_copy(reply_at(reply, CLAIM), ret->about, sizeof(ret->about)) < 0)
        return -EBADMSG;
    return strcmp(answer, "unknown") == 0 ? STORE_E_UNKNOWN : strcmp(answer, "held") == 0 ? STORE_E_HELD : -EBADMSG;
}

/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/script-turns.h"

#include <stdlib.h>

static uint64_t seconds;

uint64_t script_due_in(int64_t after) {
    return (uint64_t) ((int64_t) seconds + after);
}

const char *script_turn_as(const char *session, const char *id, uint64_t due, const char *overlap) {
    return script_sayf("turn %s 1 $ %s 0_7_r-%s_b %" PRIu64 " %s @b 1 100", session, id, id, due, overlap);
}

const char *script_turn(const char *session, const char *id, uint64_t due) {
    return script_turn_as(session, id, due, "skip");
}

const char *script_turned(const char *session, const char *words) {
    return script_sayf("turned %s 1 $ %s", session, words);
}

void script_begin_turns(void) {
    _cleanup_reply_ redisReply *r = NULL;

    script_begin();
    r = redis_command(&script_server, "TIME");
    seconds = strtoull(r && r->elements == 2 ? r->element[0]->str : "0", NULL, 10);
    for (unsigned i = 1; i <= 2; i++) {
        char session[] = {'s', (char) ('0' + i), '\0'};

        EXPECT(script_hello(session, 1, 3, "db 4 net 2 @b 1"), "ok $ *");
    }
}

void script_end_turns(void) {
    script_tell("DEL berth:{t}:marks berth:{t}:pool:@b:turns");
    script_end();
}

/* SPDX-License-Identifier: MIT */
#include "store/snapshot.h"

#include <stdlib.h>

struct snapshot *snapshot_free(struct snapshot *s) {
    if (!s)
        return NULL;
    if (s->n_shared > 0) {
        s->n_shared--;
        return NULL;
    }
    for (size_t i = 0; i < s->n_pools; i++) {
        free(s->pools[i].override_reason);
        free(s->pools[i].holders);
        free(s->pools[i].queue);
    }
    for (size_t i = 0; i < s->n_sessions; i++)
        free(s->sessions[i].limits);
    free(s->pools);
    free(s->sessions);
    for (size_t i = 0; i < s->n_times; i++)
        free(s->times[i].text);
    free(s->times);
    free(s->mine);
    free(s->malformed);
    free(s);
    return NULL;
}

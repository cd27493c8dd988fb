/* SPDX-License-Identifier: MIT */
#include "store/redis/operator/inspect-known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    return strcmp(((const struct known_claim *) a)->id, ((const struct known_claim *) b)->id);
}

static int compare_id(const void *id, const void *claim) {
    return strcmp(id, ((const struct known_claim *) claim)->id);
}

static struct known_claim *find(const struct known_claims *k, const char *id) {
    return k->n > 0 ? bsearch(id, k->all, k->n, sizeof(*k->all), compare_id) : NULL;
}

const char *known_claims_find(const struct known_claims *k, const char *id) {
    const struct known_claim *known = find(k, id);

    return known ? known->record : NULL;
}

void known_claims_make_room(struct known_claims *k, size_t n, usec_t now) {
    if (k->n > 0 && (k->n + n > KNOWN_CLAIMS_MAX || usec_sub(now, k->since) > KNOWN_CLAIMS_AGE))
        known_claims_drop(k);
}

int known_claims_add(struct known_claims *k, const char (*ids)[ID_TEXT_SIZE], const char *const *records,
                     size_t n, usec_t now) {
    struct known_claim *grown = reallocarray(k->all, k->n + n + 1, sizeof(*grown));
    size_t sorted = k->n;

    if (!grown)
        return -ENOMEM;
    k->all = grown;
    if (k->n == 0)
        k->since = now;
    for (size_t i = 0; i < n; i++) {
        struct known_claims before = {.all = k->all, .n = sorted};
        struct known_claim *known = find(&before, ids[i]);
        char *record = records[i] ? strdup(records[i]) : NULL;

        if (records[i] && !record)
            return -ENOMEM;
        if (!known) {
            known = &k->all[k->n++];
            *known = (struct known_claim){0};
            memcpy(known->id, ids[i], ID_TEXT_SIZE);
        }
        free(known->record);
        known->record = record;
    }
    qsort(k->all, k->n, sizeof(*k->all), compare);
    return 0;
}

void known_claims_drop(struct known_claims *k) {
    for (size_t i = 0; i < k->n; i++)
        free(k->all[i].record);
    free(k->all);
    *k = (struct known_claims){0};
}

/* SPDX-License-Identifier: MIT */
#include "store/redis/client/pendings.h"

#include <errno.h>
#include <stdlib.h>

static void forget(struct redis_pending *p) {
    list_unlink(&p->link);
    free(p);
}

void redis_pendings_init(struct redis_pendings *pendings) {
    *pendings = (struct redis_pendings) {};
    list_init(&pendings->list);
}

void redis_pendings_done(struct redis_pendings *pendings) {
    list_foreach_safe (p, &pendings->list, struct redis_pending, link)
        forget(p);
}

int redis_pendings_add(struct redis_pendings *pendings, const struct redis_pending *pending) {
    struct redis_pending *p = malloc(sizeof(*p));

    if (!p)
        return -ENOMEM;
    *p = *pending;
    list_append(&pendings->list, &p->link);
    pendings->n_commands++;
    return 0;
}

void redis_pendings_drop_last(struct redis_pendings *pendings) {
    forget(list_entry(pendings->list.prev, struct redis_pending, link));
    pendings->n_commands--;
}

void redis_pendings_take(struct redis_pendings *pendings, struct redis_pending *ret) {
    struct redis_pending *first = list_first(&pendings->list, struct redis_pending, link);

    *ret = *first;
    forget(first);
    pendings->n_replies++;
}

const struct redis_pending *redis_pendings_first(const struct redis_pendings *pendings) {
    return list_first(&pendings->list, struct redis_pending, link);
}

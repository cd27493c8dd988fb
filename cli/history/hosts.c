/* SPDX-License-Identifier: MIT */
#include "cli/history/hosts.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

static int compare_hosts(const void *a, const void *b) {
    return strcmp(((const struct history_host *) a)->name, ((const struct history_host *) b)->name);
}

/* Finds a host, or adds it. Hosts are few, and mostly the next entry is of the same host, so a linear search is fast. */
static struct history_host *find_or_add(struct history_hosts *h, const char *name, size_t *last) {
    if (*last < h->n && strcmp(h->items[*last].name, name) == 0)
        return &h->items[*last];
    for (*last = 0; *last < h->n; (*last)++)
        if (strcmp(h->items[*last].name, name) == 0)
            return &h->items[*last];
    if (!array_grow(h->items, h->n))
        return NULL;
    h->items[h->n] = (struct history_host){.name = name};
    return &h->items[h->n++];
}

int history_hosts_make(const struct entries *e, struct history_hosts *ret) {
    _cleanup_(history_hosts_done) struct history_hosts hosts = {};
    size_t last = 0;

    for (size_t i = 0; i < e->n; i++) {
        struct history_host *host;

        if (!e->items[i].host[0])
            continue;
        host = find_or_add(&hosts, e->items[i].host, &last);
        if (!host)
            return -ENOMEM;
        if (entry_is_of_another(&e->items[i]))
            continue;
        host->wrote = true;
        host->boot = e->items[i].boot;
    }
    if (hosts.n > 0)
        qsort(hosts.items, hosts.n, sizeof(*hosts.items), compare_hosts);
    *ret = hosts;
    hosts = (struct history_hosts){};
    return 0;
}

void history_hosts_done(struct history_hosts *h) {
    free(h->items);
    *h = (struct history_hosts){};
}

const struct history_host *history_hosts_find(const struct history_hosts *h, const char *name) {
    const struct history_host key = {.name = name};

    return h->n > 0 ? bsearch(&key, h->items, h->n, sizeof(*h->items), compare_hosts) : NULL;
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* The hosts in journals: the writers, and hosts that only entries of others name. */

#include "base/journal/entries.h"

struct history_host {
    const char *name; /* borrowed from entries, as `boot` */
    const char *boot; /* of the last entry that it wrote; NULL: none */
    bool wrote;       /* it wrote entries */
};

struct history_hosts {
    struct history_host *items; /* by name */
    size_t n;
};

/* -ENOMEM. */
int history_hosts_make(const struct entries *e, struct history_hosts *ret);
void history_hosts_done(struct history_hosts *h);
/* Returns NULL if no entry names the host. */
const struct history_host *history_hosts_find(const struct history_hosts *h, const char *name);

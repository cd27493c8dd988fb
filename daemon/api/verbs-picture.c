/* SPDX-License-Identifier: MIT */

/* The replies of Pools, Hosts and Look, from snapshots. */

#include <stdio.h>

#include "daemon/api/verbs-internal.h"

/* Returns the age of the oldest data, or null if Redis is away. This host's own data is always new. */
static json_t *json_age(struct manager *m, const struct snapshot *cluster) {
    if (!manager_cluster_store(m))
        return json_integer(0);
    return cluster ? json_msec(usec_sub(clock_boottime(), cluster->begun)) : json_null();
}

json_t *json_picture(struct manager *m, const struct snapshot *cluster, json_t *hosts) {
    return json_pack("{s:i, s:s, s:o, s:b, s:o, s:b, s:o, s:o*}", "schema", 1, "host", manager_settings(m)->host, "redis",
                     json_redis(m, cluster), "stale", manager_cluster_store(m) && !cluster, "age_ms", json_age(m, cluster),
                     "recovering", manager_is_recovering(m), "malformed", json_malformed(cluster), "hosts", hosts);
}

/* Writes the members besides pools. */
static int write_others(const struct picture *p, const struct pools_text *pools, const struct snapshot *cluster) {
    json_t *hosts = p->has_hosts ? json_hosts(p->manager, cluster) : NULL;
    _cleanup_json_ json_t *o = hosts || !p->has_hosts ? json_picture(p->manager, cluster, hosts) : NULL;

    if (!o || json_object_set_new(o, "complete", json_boolean(pools->is_complete)) < 0 ||
        (p->has_times && json_object_set_new(o, "usual", json_usual(p->manager, cluster, pools->names)) < 0))
        return -1;
    return fputc(',', pools->f) < 0 ? -1 : json_dumpf(o, pools->f, JSON_COMPACT | JSON_EMBED);
}

struct control_text *picture_make(const struct picture *p, const struct snapshot *host, const struct snapshot *cluster,
                                  const char **ret_unknown) {
    _cleanup_json_ json_t *names = p->has_times ? json_object() : NULL;
    struct pools_text pools = {.names = names};
    _cleanup_(control_text_freep) struct control_text *text = control_text_new(p->continues, &pools.f);

    if (!text || fputs("\"pools\":", pools.f) < 0 || pools_text_write(&pools, p->manager, host, cluster, p->wanted) < 0)
        return NULL;
    *ret_unknown = pools.unknown;
    if (pools.unknown || write_others(p, &pools, cluster) < 0 || control_text_finish(text) < 0)
        return NULL;
    return steal_pointer(&text);
}

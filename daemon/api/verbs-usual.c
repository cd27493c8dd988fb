/* SPDX-License-Identifier: MIT */

/* How long runs usually hold their permits, as JSON, for names that hold permits of some pools or wait for
 * them. This host knows its own runs, and other hosts publish theirs. */

#include <string.h>

#include "daemon/api/verbs-internal.h"
#include "daemon/times-table.h"

static json_t *json_summary(const char *host, const struct times_summary *s) {
    json_t *q = json_array();
    int k = 0;

    for (size_t i = 0; i < RUN_TIMES_QUANTILES; i++)
        k |= json_array_append_new(q, json_integer(s->q_msec[i]));
    if (k == 0)
        return json_pack("{s:s, s:s, s:i, s:o, s:o}", "host", host, "name", s->name, "runs", (int) s->n,
                         "q_ms", q, "cap_ms", json_number((json_int_t) s->cap_msec, s->cap_msec > 0));
    json_decref(q);
    return NULL;
}

static int add_host(json_t *list, const json_t *names, const char *host, const char *text) {
    struct times_summary s;
    char who[2 * NAME_MAX_LENGTH + 2];
    int k = 0;

    while (k == 0 && text && (text = times_read(text, &s))) {
        (void) snprintf(who, sizeof(who), "%s %s", host, s.name);
        if (json_object_get(names, who))
            k = json_array_append_new(list, json_summary(host, &s));
    }
    return k;
}

json_t *json_usual(struct manager *m, const struct snapshot *cluster, const json_t *names) {
    _cleanup_json_ json_t *list = json_array();
    _cleanup_free_ char *own = manager_format_times(m);
    int k = own && names ? 0 : -1;

    k |= add_host(list, names, manager_settings(m)->host, own);
    for (size_t i = 0; cluster && i < cluster->n_times; i++)
        k |= add_host(list, names, cluster->times[i].host, cluster->times[i].text);
    return k == 0 ? steal_pointer(&list) : NULL;
}

/* SPDX-License-Identifier: MIT */

/* Find: resolves names that people type. A name is that of a job or template, or a whole run id; else the
 * label or the leading digits of the id of one run on this host. If the label of a run equals the name or id
 * of another one, that name is ambiguous, so nobody can redirect it. A verb resolves all its names before it
 * acts on the first. */

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "daemon/api/verbs-internal.h"

#define CANDIDATES_MAX 16 /* candidates sent for an ambiguous name */

struct candidates {
    const struct run *runs[CANDIDATES_MAX];
    size_t n; /* may be more than CANDIDATES_MAX */
};

/* prefix: the length of a name that can be a part of an id; else 0. */
static bool can_mean(const char *name, size_t prefix, const struct run *r) {
    return (prefix > 0 && memcmp(r->id, name, prefix) == 0) || (!run_is_over(r) && strcmp(r->name, name) == 0);
}

static void collect(struct manager *m, const char *name, struct candidates *ret) {
    const struct run *same = manager_find_run(m, name);
    size_t prefix = id_prefix_is_valid(name) ? strlen(name) : 0;

    for (enum run_state s = 0; !same && s < RUN_STATES; s++)
        list_foreach(r, manager_runs(m, s), struct run, link)
            if (can_mean(name, prefix, r)) {
                if (ret->n < CANDIDATES_MAX)
                    ret->runs[ret->n] = r;
                ret->n++;
            }
    if (same)
        *ret = (struct candidates) {.runs = {same}, .n = 1};
}

static int ambiguous(struct control_call *call, const char *name, const struct candidates *c) {
    json_t *list = json_array();

    for (size_t i = 0; i < c->n && i < CANDIDATES_MAX; i++)
        (void) json_array_append_new(list, json_pack("{s:s, s:s}", "run", c->runs[i]->id, "name", c->runs[i]->name));
    return control_call_error(call, "io.berth.Ambiguous",
                              json_pack("{s:s, s:I, s:o}", "name", name, "count", (json_int_t) c->n, "candidates", list));
}

static int not_found(struct control_call *call, struct manager *m, const char *name) {
    if (manager_is_recovering(m))
        return verbs_refused(call, MANAGER_E_RECOVERING);
    return id_prefix_is_valid(name) ? verbs_no_such_run(call, name) : verbs_no_such_job(call, m, name);
}

/* Stores a Found. VERBS_ANSWERED: none or several match. */
static int find(struct control_call *call, struct manager *m, const char *name, json_t **ret) {
    struct candidates c = {};
    int k;

    if (verbs_find_job(m, name) || settings_find_instance(manager_settings(m), name)) {
        *ret = json_pack("{s:s, s:b}", "target", name, "is_job", true);
        return 0;
    }
    collect(m, name, &c);
    if (c.n == 1) {
        *ret = json_pack("{s:s, s:b}", "target", c.runs[0]->id, "is_job", false);
        return 0;
    }
    k = c.n > 1 ? ambiguous(call, name, &c) : not_found(call, m, name);
    return k < 0 ? k : VERBS_ANSWERED;
}

/* found: a Found; a run has no parameters to check. */
static int check_set(struct control_call *call, struct manager *m, const json_t *found, json_t *set) {
    const char *target = json_string_value(json_object_get(found, "target"));
    char **list;
    int k;

    if (job_name_parse(target) == JOB_NAME_TEMPLATE) {
        k = verbs_no_such_job(call, m, target);
        return k < 0 ? k : VERBS_ANSWERED;
    }
    if (!json_is_true(json_object_get(found, "is_job")))
        return 0;
    list = params_list_set(set);
    k = list ? params_check_set(call, m, target, list) : -ENOMEM;
    text_free_list(list);
    return k;
}

int verbs_find(struct control_call *call, json_t *params, void *userdata) {
    _cleanup_json_ json_t *found = json_array();
    json_t *names = NULL, *name, *one, *set = NULL;
    const struct param table[] = {{"names", PARAM_STRINGS, true, &names, 0, 0},
                                  {"set", PARAM_TEXTS, false, &set, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));
    size_t i;

    if (k != 0)
        return k;
    json_array_foreach(names, i, name) {
        k = params_check_job(call, "job or run", json_string_value(name));
        k = k != 0 ? k : find(call, userdata, json_string_value(name), &one);
        if (k != 0)
            return k;
        k = set ? check_set(call, userdata, one, set) : 0;
        if (k != 0) {
            json_decref(one);
            return k;
        }
        if (json_array_append_new(found, one) < 0)
            return -ENOMEM;
    }
    return control_call_answer(call, json_pack("{s:O}", "found", found));
}

/* SPDX-License-Identifier: MIT */

/* Which runs there are: by id and by state, the finished ones up to a bound, and when something of each is due. */

#include <assert.h>
#include <search.h>
#include <string.h>

#include "daemon/manager-internal.h"

static int compare_ids(const void *a, const void *b) {
    const struct run *x = a, *y = b;

    return memcmp(x->id, y->id, sizeof(x->id));
}

struct run *manager_find_run(struct manager *m, const char *id) {
    struct run key, **slot;

    if (!id_is_valid(id))
        return NULL;
    memcpy(key.id, id, sizeof(key.id));
    slot = tfind(&key, &m->runs_by_id, compare_ids);
    return slot ? *slot : NULL;
}

static void forget_run(struct manager *m, struct run *r) {
    if (r->state == RUN_STATE_DONE)
        m->n_done--;
    (void) tdelete(r, &m->runs_by_id, compare_ids);
    run_free(r);
}

/* Finished runs are kept for `berth runs --all`, up to a bound; one that still owes its release is not forgotten, nor the newest: its
 * end may be what begins another run. */
static void forget_old_runs(struct manager *m) {
    list_foreach_safe(r, &m->runs[RUN_STATE_DONE], struct run, link) {
        if (m->n_done <= MANAGER_DONE_MAX || r->link.next == &m->runs[RUN_STATE_DONE])
            return;
        if (r->host_claim.state == CLAIM_STATE_NONE && r->cluster_claim.state == CLAIM_STATE_NONE &&
            list_is_empty(&r->watches))
            forget_run(m, r);
    }
}

void manager_on_due(struct due *due, _unused_ void *userdata) {
    struct run *r = list_entry(due, struct run, due);

    r->on_due(r);
}

static void give_room_of_dues(struct manager *m) {
    dues_give_room(&m->dues);
    dues_give_room(&m->late_dues);
}

static int make_room_for_dues(struct manager *m) {
    if (dues_make_room(&m->dues) < 0)
        return -ENOMEM;
    if (dues_make_room(&m->late_dues) == 0)
        return 0;
    dues_give_room(&m->dues);
    return -ENOMEM;
}

int manager_add_run(struct manager *m, struct run *r, enum run_state state) {
    struct run **slot;

    forget_old_runs(m); /* here, where nobody has hold of an old one */
    /* Now, so that no time limit of it can fail for lack of memory later. */
    if (make_room_for_dues(m) < 0)
        return -ENOMEM;
    slot = tsearch(r, &m->runs_by_id, compare_ids);
    if (!slot || *slot != r) {
        give_room_of_dues(m);
        return slot ? -EEXIST : -ENOMEM;
    }
    r->may_be_due = true;
    run_set_state(r, m->runs, state);
    return 0;
}

void manager_replace_run(struct run *old, struct run *fresh) {
    struct manager *m = old->manager;
    struct run **slot = tfind(old, &m->runs_by_id, compare_ids);

    assert(slot && *slot == old && old->state == RUN_STATE_PENDING && old->due.place == 0);
    *slot = fresh;
    fresh->may_be_due = old->may_be_due; /* with the room among the dues */
    list_foreach_safe(w, &old->watches, struct run_watch, link) {
        list_unlink(&w->link);
        list_append(&fresh->watches, &w->link);
    }
    list_append(&m->runs[RUN_STATE_PENDING], &fresh->link);
    run_free(old);
}

void manager_set_state(struct run *r, enum run_state state) {
    r->manager->n_done += state == RUN_STATE_DONE;
    run_set_state(r, r->manager->runs, state);
    manager_service_changed(r->manager);
}

void manager_disarm(struct run *r) {
    dues_unset(&r->due);
}

void manager_never_due(struct run *r) {
    manager_disarm(r);
    if (r->may_be_due)
        give_room_of_dues(r->manager);
    r->may_be_due = false;
}

static void arm(struct run *r, struct dues *dues, usec_t boottime, void (*on_due)(struct run *run)) {
    if (!r->may_be_due)
        return;
    r->on_due = on_due;
    dues_set(dues, &r->due, boottime);
}

void manager_arm(struct run *r, usec_t boottime, void (*on_due)(struct run *run)) {
    arm(r, &r->manager->dues, boottime, on_due);
}

void manager_arm_late(struct run *r, usec_t boottime, void (*on_due)(struct run *run)) {
    arm(r, &r->manager->late_dues, boottime, on_due);
}

/* SPDX-License-Identifier: MIT */

/* The claims of a test bed: see store-bed.h. */

#include <stdlib.h>
#include <string.h>

#include "tests/harness/store/store-bed.h"

struct probe *bed_probe(struct bed *b, unsigned host, const char *pools) {
    struct probe *p = calloc(1, sizeof(*p));

    if (!p || demands_parse(pools, &p->demands) != 0)
        abort();
    id_make(p->id);
    p->bed = b;
    p->host = host % b->n_hosts;
    demands_get_refs(&p->demands, p->refs);
    p->claim.demands = p->refs;
    p->claim.n_demands = p->demands.n;
    p->claim.id = p->id;
    p->claim.name = "probe";
    list_append(&b->probes, &p->link);
    return p;
}

void probe_ask(struct probe *p) {
    p->bed->in_call = true;
    TEST_INT(store_claim(p->bed->stores[p->host], &p->claim), 0);
    p->bed->in_call = false;
    CU_ASSERT(p->claim.state != CLAIM_STATE_NONE);
    TEST_INT(p->n_waiting + p->n_granted + p->n_refused, 0);
}

void probe_grant(struct probe *p) {
    probe_ask(p);
    BED_UNTIL(p->bed, p->n_granted > 0);
}

void probe_wait(struct probe *p) {
    probe_ask(p);
    BED_UNTIL(p->bed, p->n_waiting > 0);
    TEST_INT(p->n_granted, 0);
}

void probe_refuse(struct probe *p, enum store_refusal refusal) {
    probe_ask(p);
    BED_UNTIL(p->bed, p->n_refused > 0);
    TEST_INT(p->refusal, refusal);
    TEST_INT(p->n_granted + p->n_waiting, 0);
}

void probe_still_waits(struct probe *p) {
    bed_settle(p->bed);
    TEST_INT(p->n_granted, 0);
    CU_ASSERT(p->claim.state == CLAIM_STATE_WAITING || p->claim.state == CLAIM_STATE_PARKED);
}

void probe_release(struct probe *p) {
    p->bed->in_call = true;
    store_release(p->bed->stores[p->host], &p->claim);
    p->bed->in_call = false;
}

void probe_end(struct probe *p) {
    unsigned n = p->n_released;

    probe_release(p);
    BED_UNTIL(p->bed, p->n_released > n);
    TEST_INT(p->n_released, n + 1);
}

usec_t bed_hand_over(struct bed *b, unsigned n) {
    struct probe *held = bed_probe(b, 0, "one");
    usec_t shortest = USEC_INFINITY;

    probe_grant(held);
    for (unsigned i = 0; i < n; i++) {
        struct probe *next = bed_probe(b, i + 1, "one");
        usec_t began, took;

        probe_wait(next);
        bed_settle(b); /* nothing else is on its way */
        began = clock_boottime();
        probe_release(held);
        BED_UNTIL(b, next->n_granted == 1);
        took = clock_boottime() - began;
        shortest = took < shortest ? took : shortest;
        held = next;
    }
    return shortest;
}

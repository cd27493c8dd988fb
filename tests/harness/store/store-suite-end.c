/* SPDX-License-Identifier: MIT */

/* The store suite: how claims end. */

#include "tests/harness/store/store-suite-internal.h"

void store_suite_test_withdraw(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "db:4"), *first = bed_probe(&b, 1, "db:4"), *second = bed_probe(&b, 2, "db:1");
    probe_grant(holder);
    probe_wait(first);
    probe_wait(second);
    probe_end(first);
    probe_release(holder);
    BED_UNTIL(&b, second->n_granted > 0);
    TEST_INT(first->n_granted, 0);
    bed_done(&b);
}

/* The head of the queue withdraws: who was behind it gets what is free, with nothing released. */
void store_suite_test_withdraw_head(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "db:3"), *head = bed_probe(&b, 1, "db:2,net:1"), *next = bed_probe(&b, 2, "db:1");
    probe_grant(holder);
    probe_wait(head);
    probe_wait(next);
    probe_release(head);
    BED_UNTIL(&b, next->n_granted > 0);
    BED_UNTIL(&b, head->n_released > 0);
    bed_done(&b);
}

/* Withdrawn before the answer was there, when it would be granted, or wait, or be refused. */
void store_suite_test_withdraw_asked(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *granted = bed_probe(&b, 0, "db:4"), *waiting = bed_probe(&b, 0, "db:4"), *refused = bed_probe(&b, 0, "db:4"),
                 *next = bed_probe(&b, 0, "db:4");
    refused->claim.nowait = true;
    probe_ask(granted);
    probe_ask(waiting);
    probe_ask(refused);
    probe_ask(next);
    probe_release(granted);
    probe_release(waiting);
    probe_release(refused);
    BED_UNTIL(&b, granted->n_released + waiting->n_released + refused->n_released == 3);
    BED_UNTIL(&b, next->n_granted > 0);
    TEST_INT(granted->n_granted + waiting->n_granted + waiting->n_waiting + refused->n_refused, 0);
    bed_done(&b);
}

void store_suite_test_release_is_idempotent(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *p = bed_probe(&b, 0, "db:2"), *other = bed_probe(&b, 1, "db:2");
    probe_release(p); /* never asked */
    probe_grant(p);
    probe_grant(other);
    probe_release(p);
    TEST_INT(p->claim.state, CLAIM_STATE_RELEASING);
    probe_release(p);
    BED_UNTIL(&b, p->n_released > 0);
    probe_release(p);
    bed_settle(&b);
    TEST_INT(p->n_released, 1);
    TEST_INT(bed_used(&b, "db"), 2);
    bed_done(&b);
}

void store_suite_test_revoke(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one"), *next = bed_probe(&b, 2, "one");
    probe_grant(held);
    probe_wait(waiting);
    probe_wait(next);
    TEST_INT(bed_revoke(&b, 1, held->claim.id), 0);
    BED_UNTIL(&b, held->n_lost > 0);
    TEST_INT(held->loss, STORE_LOSS_REVOKED);
    TEST_INT(held->claim.state, CLAIM_STATE_HELD);
    probe_still_waits(waiting); /* it is held until its owner releases it */
    TEST_INT(bed_used(&b, "one"), 1);
    TEST_INT(bed_revoke(&b, 2, waiting->claim.id), 0);
    BED_UNTIL(&b, waiting->n_lost > 0);
    TEST_INT(waiting->loss, STORE_LOSS_REVOKED);
    probe_end(waiting);
    probe_end(held);
    BED_UNTIL(&b, next->n_granted > 0);
    TEST_INT(waiting->n_granted, 0);
    TEST_INT(held->n_lost, 1);
    TEST_INT(bed_revoke(&b, 0, held->claim.id), STORE_E_UNKNOWN);
    TEST_INT(bed_revoke(&b, 0, "00112233445566778899aabbccddeeff"), STORE_E_UNKNOWN);
    bed_done(&b);
}

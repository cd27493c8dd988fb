/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of the store suite share. */

#include "tests/harness/store/store-suite.h"

extern const struct store_pool store_suite_pools[3]; /* of most tests: db 4, net 2, one 1 */
const struct store_fixture *store_suite_fixture(void);

/* --- tests of store-suite-limits.c --- */

void store_suite_test_declare(void);
void store_suite_test_limit_zero(void);
void store_suite_test_override(void);
void store_suite_test_pause(void);
void store_suite_test_pause_remembers(void);
void store_suite_test_override_ends(void);
void store_suite_test_parked_leaves_all_queues(void);
void store_suite_test_withdraw_parked(void);
void store_suite_test_adopt(void);
void store_suite_test_clock_ahead(void);
void store_suite_test_claim_keeps_ticket(void);
void store_suite_test_inspect(void);

/* --- tests of store-suite-keys.c --- */

void store_suite_test_keys(void);
void store_suite_test_keys_crowded(void);
void store_suite_test_keys_in_full(void);
void store_suite_test_keys_override(void);
void store_suite_test_keys_pause(void);
void store_suite_test_keys_declare(void);
void store_suite_test_keys_vanish(void);
void store_suite_test_keys_inspect(void);

/* --- tests of store-suite-end.c --- */

void store_suite_test_withdraw(void);
void store_suite_test_withdraw_head(void);
void store_suite_test_withdraw_asked(void);
void store_suite_test_release_is_idempotent(void);
void store_suite_test_revoke(void);

/* --- tests of store-suite-move.c --- */

void store_suite_test_move_first(void);
void store_suite_test_move_before(void);
void store_suite_test_move_by(void);
void store_suite_test_move_in_all_queues(void);
void store_suite_test_move_refused(void);
void store_suite_test_move_parked(void);
void store_suite_test_move_grants(void);
void store_suite_test_move_adopted(void);
void store_suite_test_move_key(void);

/* SPDX-License-Identifier: MIT */
#pragma once

/* The contract of store/store.h as tests, the same for every kind of store. A program tests/contract/test-store-KIND.c fills a
 * fixture, calls store_suite_use() and runs store_suite_tests, with its own tests beside them if it has any. */

#include "tests/harness/store/store-bed.h"

void store_suite_use(const struct store_fixture *fixture); /* kept, not copied */
extern CU_TestInfo store_suite_tests[];
/* Starts a bed with the pools of most tests: db 4, net 2, one 1. If it fails, the test has failed. */
bool store_suite_begin(struct bed *b);

/* The random test of tests/harness/store/store-fuzz.c, which is one of them, with fixture->n_seeds seeds. A seed that fails is printed;
 * BERTH_SEED=N runs that one alone. */
void store_fuzz(const struct store_fixture *fixture, uint64_t seed);

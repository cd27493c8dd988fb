/* SPDX-License-Identifier: MIT */

/* The contract of daemon/store.h, kept by store-memory. */

#include "tests/harness/store-suite.h"

static int make(void *userdata _unused_, unsigned host _unused_, const char *host_name, bool is_first _unused_, sd_event *event,
                struct events *events, const struct store_listener *listener, struct store **ret) {
    return store_memory_new(ret, event, events, host_name, listener);
}

int main(int argc, char **argv) {
    static const struct store_fixture fixture = {.n_hosts = 1, .host_scope = true, .n_seeds = 20, .make = make};
    CU_SuiteInfo suites[] = {{.pName = "store-memory", .pTests = store_suite_tests}, CU_SUITE_INFO_NULL};

    store_suite_use(&fixture);
    return test_main(argc, argv, suites);
}

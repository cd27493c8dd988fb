/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/process/supervise.h"

static const char *const reason_names[] = {
    [SUPERVISE_REASON_NONE] = "none",       [SUPERVISE_REASON_STOPPED] = "stopped",
    [SUPERVISE_REASON_REVOKED] = "revoked", [SUPERVISE_REASON_LEASE_LOST] = "lease-lost",
    [SUPERVISE_REASON_TIMEOUT] = "timeout", [SUPERVISE_REASON_SHUTDOWN] = "shutdown",
};

const char *supervise_reason_name(enum supervise_reason reason) {
    return reason_names[reason];
}

int supervise_reason_parse(const char *name, enum supervise_reason *ret) {
    for (size_t i = 0; i < ELEMENTSOF(reason_names); i++)
        if (strcmp(name, reason_names[i]) == 0) {
            *ret = (enum supervise_reason) i;
            return 0;
        }
    return -EINVAL;
}

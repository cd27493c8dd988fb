/* SPDX-License-Identifier: MIT */
#include "store/store.h"

const char *store_refusal_name(enum store_refusal refusal) {
    switch (refusal) {
    case STORE_REFUSAL_BUSY:
        return "busy";
    case STORE_REFUSAL_QUEUE_FULL:
        return "queue-full";
    case STORE_REFUSAL_NO_MEMORY:
        return "no-memory";
    }
    return "unknown";
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* The metrics that berthd fills in and `berth metrics` prints: see metrics.def. */

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

enum metric {
#define METRIC(constant, name, type, labels, help) METRIC_IS_##constant,
#include "base/metrics.def"
#undef METRIC
    METRICS
};

struct metric_row {
    const char *name; /* "berth_wait_seconds"; of a counter with "_total" */
    enum metric_type type;
    const char *labels; /* "pool,scope"; "": none */
    const char *help;   /* for people */
};
const struct metric_row *metric_get(enum metric metric);

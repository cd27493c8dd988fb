/* SPDX-License-Identifier: MIT */

#include "base/metric.h"

static const struct metric_row table[METRICS] = {
#define METRIC(constant, name, type, labels, help)                                                          \
    [METRIC_IS_##constant] = {name, METRIC_##type, labels, help},
#include "base/metrics.def"
#undef METRIC
};

const struct metric_row *metric_get(enum metric metric) {
    return &table[metric];
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* Metrics as text: Prometheus' text format 0.0.4, or OpenMetrics 1.0.0. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Writes the samples of io.berth.Metrics in the order of base/metrics.def. metrics: NULL: berthd is away, so berth_up is
 * 0 and the only metric. */
void metrics_print(FILE *f, const json_t *metrics, bool is_openmetrics);

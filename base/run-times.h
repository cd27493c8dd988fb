/* SPDX-License-Identifier: MIT */
#pragma once

/* What berthd keeps and sends of how long runs of a name held their permits, and how many of them an estimate needs. */

#define RUN_TIMES_MAX 64    /* runs of a name that berthd remembers */
#define RUN_TIMES_ENOUGH 10 /* with fewer runs, a name is estimated from all runs of its pool */
#define RUN_TIMES_QUANTILES 8
#define RUN_TIMES_PERCENTS {0, 5, 25, 50, 75, 90, 95, 100} /* of each quantile */

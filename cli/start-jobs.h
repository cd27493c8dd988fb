/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Starts all jobs, then prints the id of each run. set: their parameters, an object. wait: until the runs are over. Returns
 * the first exit status that is not 0, with its reason printed (berth(1), EXIT STATUS). */
int start_jobs(size_t n, char *const *jobs, json_t *set, bool wait);

/* Returns the exit status of `berth start --wait` for a finished run (io.berth's Run). */
int run_exit_status(const json_t *run);

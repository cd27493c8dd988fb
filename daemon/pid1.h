/* SPDX-License-Identifier: MIT */
#pragma once

/* berthd as the first process of a container (PID 1). */

#include <stdbool.h>

/* Returns false at once if this process is not PID 1. Otherwise forks. The child returns false and goes on as
 * berthd. PID 1 reaps all processes that lost their parents, and passes signals on to berthd. It returns true
 * when berthd has ended, with berthd's exit status (128+N after signal N), or with 70 if it could not fork. */
bool pid1_serve(int *ret_status);

/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "base/clock.h"

/* Sorts n durations or instants, the least first. */
void durations_sort(usec_t *durations, size_t n);

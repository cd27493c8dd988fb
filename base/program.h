/* SPDX-License-Identifier: MIT */
#pragma once

#include <limits.h>

/* Finds another program of berth beside this one, else where it is installed. Returns 0 or a negative errno; *ret names
 * the last place in any case. */
int program_find(const char *name, char ret[static PATH_MAX]);

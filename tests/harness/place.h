/* SPDX-License-Identifier: MIT */
#pragma once

/* Where tests find the programs of this build, and how they clean up what they made. */

#include <stddef.h>

/* The folder of the build ($BERTH_BUILD, or "build"), absolute; for the life of the test program. */
const char *place_build(void);
/* A program in it ("berthd", "tests/tools/witness"). Returns buffer. */
const char *place_program(char *buffer, size_t size, const char *name);
/* Removes a folder with all that is below it; no failure if it is not there. */
void place_remove(const char *folder);

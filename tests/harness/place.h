/* SPDX-License-Identifier: MIT */
#pragma once

/* Paths of this build's programs, and the removal of test folders. */

#include <stddef.h>

/* Returns the absolute folder of the build ($BERTH_BUILD, or "build"), for the life of the test program. */
const char *place_build(void);
/* Returns the folder of the programs: place_build(), or a copy below /tmp if the path has characters that
 * need quotes in a shell or config, or if root tests a build that other users cannot read. The copy is
 * removed when the test program ends. */
const char *place_programs(void);
/* To be called right before the test program executes itself again, which then uses and removes the copy. */
void place_keep_over_exec(void);
/* Formats the path of a program ("berthd", "tests/tools/witness"). Returns buffer. */
const char *place_program(char *buffer, size_t size, const char *name);
/* Removes a folder and its contents, if it exists. */
void place_remove(const char *folder);

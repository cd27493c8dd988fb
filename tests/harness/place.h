/* SPDX-License-Identifier: MIT */
#pragma once

/* Where tests find the programs of this build, and how they clean up what they made. */

#include <stddef.h>

/* The folder of the build ($BERTH_BUILD, or "build"), absolute; for the life of the test program. */
const char *place_build(void);
/* Where its programs are. This is place_build(), or a copy below /tmp if that path has characters that a shell or a config would need
 * quoted, or if root tests a build that other users may not enter. The copy goes when the test program ends. */
const char *place_programs(void);
/* Called right before the test program executes itself again: that goes on with the copy, and removes it. */
void place_keep_over_exec(void);
/* A program there ("berthd", "tests/tools/witness"). Returns buffer. */
const char *place_program(char *buffer, size_t size, const char *name);
/* Removes a folder with all that is below it; no failure if it is not there. */
void place_remove(const char *folder);

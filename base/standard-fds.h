/* SPDX-License-Identifier: MIT */
#pragma once

/* A caller may have closed 0, 1 or 2: none of a program's own descriptors may land there, where it, or a command, would write what is meant
 * for people. Such a one becomes /dev/null, which is closed again for what is executed. First thing in a program that opens anything. 0 or
 * a negative errno. */
int standard_fds_fill(void);

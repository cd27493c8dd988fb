/* SPDX-License-Identifier: MIT */
#pragma once

/* Opens /dev/null for each of the descriptors 0, 1 and 2 that the caller has closed. Otherwise one of the
 * program's own descriptors would get that number, and messages for people would be written into it. These
 * descriptors are closed on exec. To be called before anything else is opened. 0 or a negative errno. */
int standard_fds_fill(void);

/* For the end of a program, which prints nothing afterwards: prints on standard error if something could not be written to
 * standard output (a full disk, say). Returns `status`, or then EX_SOFTWARE instead of 0. */
int standard_output_end(const char *program, int status);

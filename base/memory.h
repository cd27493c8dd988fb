/* SPDX-License-Identifier: MIT */
#pragma once

/* Prints that there is no memory for `what`, and exits with 70. Called where the process would lose something
 * if it went on. As after a kill, the next start continues from the records. */
_Noreturn void memory_exit(const char *what);

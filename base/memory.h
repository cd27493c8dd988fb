/* SPDX-License-Identifier: MIT */
#pragma once

/* Says on standard error that there is no memory for `what`, and exits with 70. Called where going on would lose
 * something: as after a kill, the next start continues from the records. */
_Noreturn void memory_exit(const char *what);

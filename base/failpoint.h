/* SPDX-License-Identifier: MIT */
#pragma once

/* Steps between two outside effects at which a test lets a process die or hang. Only builds with
 * -DBERTH_FAILPOINTS have them. There, $FAILPOINT is "NAME ACTION FILE": the first process that reaches the
 * step of that name and removes the FILE performs the ACTION: "crash" (SIGKILL), or "hang" for 3.5 s. */

#ifdef BERTH_FAILPOINTS
void failpoint(const char *name);
#define FAILPOINT(name) failpoint(name)
#else
#define FAILPOINT(name) ((void) 0)
#endif

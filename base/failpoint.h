/* SPDX-License-Identifier: MIT */
#pragma once

/* Steps between two outside effects at which a test lets a process die or hang. Nothing of it is in a build without
 * -DBERTH_FAILPOINTS. There, $FAILPOINT is "NAME ACTION FILE": at the step of that name, whoever removes the FILE first does the
 * ACTION: "crash" (SIGKILL), or "hang" for 3.5 s. */

#ifdef BERTH_FAILPOINTS
void failpoint(const char *name);
#define FAILPOINT(name) failpoint(name)
#else
#define FAILPOINT(name) ((void) 0)
#endif

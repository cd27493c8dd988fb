/* SPDX-License-Identifier: MIT */
#pragma once

/* A process that copies the standard error of a program to a file, each line after the time when it came
 * (realtime in µs), and passes it on. */

#include <stdbool.h>

/* Starts a recorder behind the pipe err, whose reading end becomes that of what the recorder passes on.
 * *ret: the pipe that the recorder reads, which the caller closes. Returns false if there is no process or
 * no pipe for it. */
bool recorder_put(int err[2], const char *path, int *ret);

/* SPDX-License-Identifier: MIT */
#pragma once

/* An event of berthd among the lines of a run. */

#include <stdio.h>

#include "base/journal/journal-read.h"

/* Prints the current entry, "-- granted after 3m12s", without the end of the line. Negative errno. */
int log_event_print(FILE *f, struct journal_reader *reader, const char *event);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Captures this program's standard error, so that a test can read the events: */

struct capture {
    int saved; /* the real standard error */
    int file;  /* in memory, so any amount without a reader */
};

/* Both end the test program on failure, because it could print no message. */
void capture_begin(struct capture *c);
/* Returns what was written so far, to be freed; the capture continues. */
char *capture_read(struct capture *c);
/* Returns what was written, to be freed, and restores standard error. */
char *capture_end(struct capture *c);

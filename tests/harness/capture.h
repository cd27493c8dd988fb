/* SPDX-License-Identifier: MIT */
#pragma once

/* Takes this program's standard error for a while, so that a test can read which events were written:
 *
 *     struct capture c;
 *     capture_begin(&c);
 *     ... journal_new(), event_emit() ...
 *     _cleanup_free_ char *text = capture_end(&c);
 */

struct capture {
    int saved; /* the real standard error */
    int file;  /* in memory; takes any amount without a reader */
};

/* Both end the test program where they fail: nothing could be told any more. */
void capture_begin(struct capture *c);
/* What was written so far, to be freed; the capture goes on. */
char *capture_read(struct capture *c);
/* What was written, to be freed; standard error is the old one again. */
char *capture_end(struct capture *c);

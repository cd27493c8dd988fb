/* SPDX-License-Identifier: MIT */
#pragma once

/* A first look at a config file, before libconfuse sees it. It finds what libconfuse 3.3 would let pass or take for something else:
 * "${" (libconfuse puts the parser's own environment there), control characters (but newlines and tabs in a script), "\x00" (cuts a
 * string), strings and braces that are not closed, options that are given twice or are not known, lists where one value belongs and the reverse, "include".
 *
 * What comes out is the text cut into statements, in a copy without comments (of which libconfuse miscounts the lines) and
 * without the options that were complained about: blanks stand in their place. */

#include "conf/syntax/notes.h"
#include "conf/options.h"

struct statement { /* one option outside of sections, or one whole section */
    enum section_kind kind;
    int option;        /* SECTION_TOP: which one; else -1 */
    size_t begin, end; /* of scan.text */
    int line;          /* of its first byte */
    uint64_t refused;  /* a section's options (bit by index) that were tried and complained about */
};

struct scan {
    char *text; /* NUL-terminated */
    struct statement *statements;
    size_t n_statements;
};

/* file: the name for errors, kept by the notes. size: without the NUL that may follow. A syntax error ends the scan: what stands
 * before it is in ret. What is wrong is in notes; 0 or -ENOMEM. */
int scan_text(struct scan *ret, const char *file, const char *text, size_t size, struct notes *notes);
void scan_done(struct scan *scan);

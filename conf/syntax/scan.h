/* SPDX-License-Identifier: MIT */
#pragma once

/* Scans a config file before libconfuse parses it. The scan finds what libconfuse 3.3 would accept or misread: "${" (libconfuse inserts the
 * parser's own environment), control characters (except newlines and tabs in a script), "\x00" (it cuts the string), strings and braces that
 * are not closed, options that are given twice or are not known, a list in place of one value and the reverse, "include".
 *
 * The result is the text cut into statements, in a copy with blanks in place of comments (libconfuse miscounts their lines) and
 * of options with errors. */

#include "conf/syntax/notes.h"
#include "conf/options.h"

struct statement { /* one option outside of sections, or one whole section */
    enum section_kind kind;
    int option;        /* SECTION_TOP: which one; else -1 */
    size_t begin, end; /* of scan.text */
    int line;          /* of its first byte */
    uint64_t refused;  /* a section's options, as bits by index, that have errors */
};

struct scan {
    char *text; /* NUL-terminated */
    struct statement *statements;
    size_t n_statements;
};

/* file: the name for errors, kept by the notes. size: without the NUL that may follow. A syntax error ends the scan; what stands
 * before it is in ret. Errors are noted; 0 or -ENOMEM. */
int scan_text(struct scan *ret, const char *file, const char *text, size_t size, struct notes *notes);
void scan_done(struct scan *scan);

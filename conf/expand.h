/* SPDX-License-Identifier: MIT */
#pragma once

/* Templates: `job "backup@"` with instances = {"db1"} stands for job "backup@db1", in whose options %i is
 * "db1". No I/O. */

#include "conf/syntax/parser.h"

/* Replaces each template by the sections of its instances. A template with open-instances also gets a section
 * of its own name, which stands for the instances that it does not list; the template itself moves to
 * parsed->open. A template with an error is noted and left out; notes->incomplete is set then, because its
 * jobs are missing. Lack of memory is noted, too. */
void templates_expand(struct parsed *parsed, struct notes *notes);
/* Makes the section of an instance, NAME@INSTANCE, that the template does not list. The caller frees it. */
void template_open(const struct parsed_section *template, const char *name, struct parsed_section *ret,
                   struct notes *notes);
/* Writes the text with the instance for %i and '%' for %%. 0; -EINVAL: there is another '%', at byte *ret_at;
 * or -ENOMEM. The caller frees *ret. */
int template_expand_text(const char *text, const char *instance, char **ret, size_t *ret_at);

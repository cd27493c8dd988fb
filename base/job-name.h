/* SPDX-License-Identifier: MIT */
#pragma once

/* Names of jobs (berth.conf(5)): plain ("pg-dump"), an instance ("backup@db1"), or a template ("backup@"),
 * which stands for all its instances. Both parts of an instance are names, and together they have at most
 * NAME_MAX_LENGTH characters. */

#include <stdbool.h>
#include <stddef.h>

#include "base/name.h"

enum job_name {
    JOB_NAME_INVALID,
    JOB_NAME_PLAIN,
    JOB_NAME_INSTANCE,
    JOB_NAME_TEMPLATE,
};
enum job_name job_name_parse(const char *text);
/* Returns an error text for an invalid name: "is empty", "has a space", "is longer than ...". */
const char *job_name_explain(const char *text);
/* Returns whether a job of this name can have runs: the name is plain or an instance. */
bool job_name_is_runnable(const char *text);
/* Returns what follows the '@', within the text. NULL: the text is no instance. */
const char *job_name_instance(const char *text);
/* Writes the template of an instance, with its '@', and returns it; NULL: the text is no instance. */
const char *job_name_template(const char *text, char buffer[static NAME_MAX_LENGTH + 1]);
/* Returns whether `name` is an instance of `template`. */
bool job_name_matches(const char *template, const char *name);

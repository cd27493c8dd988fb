/* SPDX-License-Identifier: MIT */
#pragma once

/* Parameters of a job: what `--set` and schedules may set, as variables of its environment. A parameter is a
 * text of the option `parameters`: "NAME", "NAME=a|b|c" or "NAME=~REGEX". The config, berthd and
 * berth-runner check values by the same functions. No I/O. */

#include <stdbool.h>
#include <stddef.h>

#define PARAMETERS_MAX 16     /* of one job */
#define PARAMETER_NAME_MAX 64 /* bytes, as of the next two */
#define PARAMETER_VALUE_MAX 1024
#define PARAMETER_SIZE (PARAMETER_NAME_MAX + 1 + PARAMETER_VALUE_MAX + 1) /* of NAME=VALUE, with its NUL */
#define PARAMETER_REGEX_MAX 256
#define PARAMETER_ERROR_SIZE 512 /* of an error text, with its NUL */

/* Checks one text of the option alone. 0, -EINVAL (see error: a sentence about the text) or -ENOMEM. */
int parameter_check(const char *text, char error[static PARAMETER_ERROR_SIZE]);
/* Checks the form of NAME=VALUE, whatever job it is for: the name may be set by a caller, the value is
 * printable ASCII and not too long. 0 or -EINVAL (see error). */
int parameter_check_set(const char *set, char error[static PARAMETER_ERROR_SIZE]);
/* Returns whether two texts that begin with NAME have the same name; either may end behind it or go on with '='. */
bool parameter_is_same(const char *a, const char *b);

struct parameters {           /* of one job, as its settings have them; lists are NULL-terminated or NULL */
    const char *job;          /* its name, for errors */
    char *const *texts;       /* of the option: each passed parameter_check() */
    char *const *environment; /* NAME=VALUE: defaults */
};
/* Checks what a trigger sets: each text by parameter_check_set(), the parameter exists, is set once and its
 * value is one of its values. 0, -EINVAL (see error) or -ENOMEM. */
int parameters_check_sets(const struct parameters *parameters, char *const *sets, size_t n_sets,
                          char error[static PARAMETER_ERROR_SIZE]);
/* The text of the first parameter that is not set and has no default, or NULL. */
const char *parameters_find_missing(const struct parameters *parameters, char *const *sets, size_t n_sets);
/* Both: what a trigger must pass. 0, -EINVAL (see error) or -ENOMEM. */
int parameters_check(const struct parameters *parameters, char *const *sets, size_t n_sets,
                     char error[static PARAMETER_ERROR_SIZE]);
/* Checks that the defaults are among the values of their parameters. 0, -EINVAL (see error) or -ENOMEM. */
int parameters_check_defaults(const struct parameters *parameters, char error[static PARAMETER_ERROR_SIZE]);
/* How many bytes of a text are the parameter's name. */
size_t parameter_name_length(const char *text);

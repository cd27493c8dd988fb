/* SPDX-License-Identifier: MIT */
#pragma once

/* The parameters of a job: variables of its environment that `--set` and schedules may set. A parameter is a
 * text of the option `parameters`: "NAME", "NAME=a|b|c" or "NAME=~REGEX". The config, berthd and
 * berth-runner check values with the same functions. No I/O. */

#include <stdbool.h>
#include <stddef.h>

#define PARAMETERS_MAX 16     /* of one job */
#define PARAMETER_NAME_MAX 64 /* bytes, like the next two */
#define PARAMETER_VALUE_MAX 1024
#define PARAMETER_SIZE (PARAMETER_NAME_MAX + 1 + PARAMETER_VALUE_MAX + 1) /* of NAME=VALUE, with its NUL */
#define PARAMETER_REGEX_MAX 256
#define PARAMETER_ERROR_SIZE 512 /* of an error text, with its NUL */

/* Checks one text of the option by itself. 0, -EINVAL (error: what is wrong with the text) or -ENOMEM. */
int parameter_check(const char *text, char error[static PARAMETER_ERROR_SIZE]);
/* Checks NAME=VALUE without regard to a job: a caller may set this name, and the value is printable ASCII and
 * not too long. 0 or -EINVAL (see error). */
int parameter_check_set(const char *set, char error[static PARAMETER_ERROR_SIZE]);
/* Returns whether two texts have the same name: all up to '=', or to the end. */
bool parameter_is_same(const char *a, const char *b);

struct parameters {           /* of one job, as its settings have them; lists are NULL-terminated or NULL */
    const char *job;          /* its name, for errors */
    char *const *texts;       /* of the option: each passed parameter_check() */
    char *const *environment; /* NAME=VALUE: defaults */
};
/* Checks the values that a trigger sets: each passes parameter_check_set(), the parameter exists, it is set
 * once, and it may have this value. 0, -EINVAL (see error) or -ENOMEM. */
int parameters_check_sets(const struct parameters *parameters, char *const *sets, size_t n_sets,
                          char error[static PARAMETER_ERROR_SIZE]);
/* Returns the text of the first parameter that is neither set nor has a default, or NULL. */
const char *parameters_find_missing(const struct parameters *parameters, char *const *sets, size_t n_sets);
/* Makes both checks, as each trigger must pass them. 0, -EINVAL (see error) or -ENOMEM. */
int parameters_check(const struct parameters *parameters, char *const *sets, size_t n_sets,
                     char error[static PARAMETER_ERROR_SIZE]);
/* Checks that each parameter may have its default. 0, -EINVAL (see error) or -ENOMEM. */
int parameters_check_defaults(const struct parameters *parameters, char error[static PARAMETER_ERROR_SIZE]);
/* Returns how many bytes of a text are the parameter's name. */
size_t parameter_name_length(const char *text);

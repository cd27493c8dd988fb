/* SPDX-License-Identifier: MIT */
/* "Did you mean": the option of a verb that is nearest to an unknown one. */
#include <string.h>

#include "base/nearest.h"
#include "cli/verbs.h"

/* Long names that other programs, such as flock(1) and journalctl(1), have for short options. */
static const struct {
    const char *verb, *option, *name;
} long_names[] = {
    {"run", "-p", "--pool"},           {"run", "-n", "--no-wait"},  {"run", "-n", "--nonblock"}, {"run", "-v", "--verbose"},
    {"run", "-E", "--conflict-exit-code"}, {"logs", "-f", "--follow"}, {"logs", "-n", "--lines"},    {"logs", "-m", "--merge"},
    {"history", "-m", "--merge"},      {"audit", "-m", "--merge"},  {"audit", "-c", "--config"},
};

const char *option_nearest(const char *verb, const char *written, const char *const *known, size_t n_known) {
    const char *names[ELEMENTSOF(long_names)], *near = nearest(written, known, n_known);
    size_t n = 0;

    for (size_t i = 0; i < ELEMENTSOF(long_names); i++)
        if (strcmp(long_names[i].verb, verb) == 0)
            names[n++] = long_names[i].name;
    written = near ? NULL : nearest(written, names, n);
    for (size_t i = 0; written && i < ELEMENTSOF(long_names); i++)
        if (strcmp(long_names[i].verb, verb) == 0 && long_names[i].name == written)
            return long_names[i].option;
    return near;
}

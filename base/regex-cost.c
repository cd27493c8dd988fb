/* SPDX-License-Identifier: MIT */
#include "base/regex-cost.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MAX 64 /* nested groups; deeper ones count as too long */

struct group {
    struct regex_cost all, last; /* last: the part that a repeat sign would repeat */
};

static unsigned times(unsigned a, unsigned long b) {
    return b == 0 || a == 0 ? a : b > REGEX_LENGTH_MAX || a * b > REGEX_LENGTH_MAX ? REGEX_LENGTH_MAX + 1 : (unsigned) (a * b);
}

static void add(struct group *g, struct regex_cost part) {
    g->last = part;
    g->all.length = g->all.length + part.length > REGEX_LENGTH_MAX ? REGEX_LENGTH_MAX + 1 : g->all.length + part.length;
    if (part.depth > g->all.depth)
        g->all.depth = part.depth;
}

static void repeat(struct group *g, unsigned long n) {
    struct regex_cost part = {.length = times(g->last.length, n), .depth = g->last.depth + 1};

    g->all.length -= g->all.length > REGEX_LENGTH_MAX ? 0 : g->last.length;
    add(g, part);
}

/* Returns the last character of "[...]". */
static const char *skip_brackets(const char *p) {
    p += p[1] == '^' ? 2 : 1;
    for (p += *p == ']'; *p && *p != ']'; p++)
        if (*p == '[' && p[1] && strchr(":.=", p[1])) {
            const char *end = strchr(p + 2, p[1]);

            p = end && end[1] == ']' ? end + 1 : p; /* "[:alpha:]" */
        }
    return *p ? p : p - 1;
}

/* Returns the higher number of "{2,5}", and moves *p to its last character. */
static unsigned long count_of(const char **p) {
    char *end;
    unsigned long least = strtoul(*p + 1, &end, 10), most = *end == ',' ? strtoul(end + 1, &end, 10) : 0;

    *p = *end == '}' ? end : end - 1;
    return most > least ? most : least;
}

struct regex_cost regex_cost(const char *regex) {
    struct group groups[GROUPS_MAX] = {0}, *g = groups;

    for (const char *p = regex; *p; p++)
        if (*p == '(') {
            if (g == groups + GROUPS_MAX - 1)
                return (struct regex_cost){.length = REGEX_LENGTH_MAX + 1};
            *++g = (struct group){0};
        } else if (*p == ')' && g > groups) {
            struct regex_cost inner = (g--)->all;

            inner.length += inner.length == 0; /* regcomp() copies "()", too, and needs stack for each copy */
            add(g, inner);
        } else if (*p == '*' || *p == '?')
            repeat(g, 1);
        else if (*p == '+') /* as "xx*" */
            repeat(g, 2);
        else if (*p == '{')
            repeat(g, count_of(&p));
        else {
            if (*p == '[')
                p = skip_brackets(p);
            else if (*p == '\\' && p[1])
                p++;
            add(g, (struct regex_cost){.length = 1});
        }
    for (; g > groups; g--) /* left open */
        add(g - 1, g->all);
    return groups->all;
}

/* SPDX-License-Identifier: MIT */
#include "cli/choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job-name.h"
#include "cli/client.h"

enum { IS_NAME = 1, IS_ID = 2 };

int choice_new(struct choice *ret, char **words, size_t n) {
    unsigned char *matches = calloc(n + 1, 1);

    if (!matches)
        return -ENOMEM;
    *ret = (struct choice) {.words = words, .n = n, .matches = matches};
    return 0;
}

void choice_done(struct choice *c) {
    free(c->matches);
    c->matches = NULL;
}

bool choice_is_name(const char *word, const char *name) {
    return strcmp(word, name) == 0 || job_name_matches(word, name);
}

void choice_see(struct choice *c, const char *run, const char *name) {
    for (size_t i = 0; i < c->n; i++) {
        if (choice_is_name(c->words[i], name))
            c->matches[i] |= IS_NAME;
        else if (id_begins_with(run, c->words[i]))
            c->matches[i] |= IS_ID;
    }
}

const char *choice_missing(const struct choice *c) {
    for (size_t i = 0; i < c->n; i++)
        if (c->matches[i] == 0)
            return c->words[i];
    return NULL;
}

bool choice_has(const struct choice *c, const char *run, const char *name) {
    for (size_t i = 0; i < c->n; i++)
        if (c->matches[i] & IS_NAME ? choice_is_name(c->words[i], name) : id_begins_with(run, c->words[i]))
            return true;
    return c->n == 0;
}

bool choice_is_short_id(const char *word) {
    return *word && strlen(word) < ID_PREFIX_MIN && word[strspn(word, "0123456789abcdef")] == '\0';
}

void candidates_add(struct candidates *c, const char *run, const char *name) {
    for (size_t i = 0; i < c->n && i < CANDIDATES_SHOWN; i++)
        if (strcmp(c->items[i].run, run) == 0) {
            if (!c->items[i].name[0])
                snprintf(c->items[i].name, sizeof(c->items[i].name), "%s", name);
            return;
        }
    if (c->n < CANDIDATES_SHOWN) {
        snprintf(c->items[c->n].run, sizeof(c->items[c->n].run), "%s", run);
        snprintf(c->items[c->n].name, sizeof(c->items[c->n].name), "%s", name);
    }
    c->n++;
}

int candidates_explain(const struct candidates *c, const char *word) {
    fprintf(stderr, "berth: %s matches several runs, give more digits:\n", word);
    for (size_t i = 0; i < c->n && i < CANDIDATES_SHOWN; i++)
        fprintf(stderr, "  %s  %s\n", c->items[i].run, c->items[i].name);
    if (c->n > CANDIDATES_SHOWN)
        fputs("  ...\n", stderr);
    return EXIT_UNKNOWN_NAME;
}

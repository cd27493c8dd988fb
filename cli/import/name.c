/* SPDX-License-Identifier: MIT */
/* The name of the job that a line of a crontab becomes: that of the program which the line runs. */
#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/import/import.h"

static bool is_one_of(const char *const *words, const char *word, size_t n) {
    for (; *words; words++)
        if (strlen(*words) == n && strncmp(*words, word, n) == 0)
            return true;
    return false;
}

/* The program follows after these commands: "[ -x /usr/bin/a ] && /usr/bin/a". */
static const char *const tests[] = {"[", "[[", "test", "cd", "sleep", ":", "true", "exit", NULL};
/* The program follows after these commands and their options: "nice -n 19 a". */
static const char *const wrappers[] = {"{",   "!",      "if",   "then",   "exec",    "command", "nice",
                                       "env", "ionice", "sudo", "setsid", "chronic", "timeout", NULL};

static bool is_flock(const char *word, size_t n) {
    const char *slash = memrchr(word, '/', n), *base = slash ? slash + 1 : word;

    return word + n - base == sizeof("flock") - 1 && strncmp(base, "flock", sizeof("flock") - 1) == 0;
}

/* Returns the word that names the program: the first one that is not an assignment, a test or a change of
 * folder. */
static const char *find_command(const char *command, size_t *ret_n) {
    const char *first = NULL;
    bool begins = true; /* the word begins a command */
    bool is_lock = false; /* the file that flock locks follows */
    bool is_quoted = false; /* a command may stand in quotes: flock FILE -c "a" */
    size_t n_first = 0;

    for (const char *text = command; *text;) {
        size_t n = strcspn(text, " \t;|&()%\n");

        if (n == 0) {
            begins = begins || strchr(";|&(%\n", *text);
            is_lock = is_lock && !strchr(";|&(%\n", *text);
            text++;
            continue;
        }
        if (is_quoted && strchr("\"'", *text)) {
            text++;
            continue;
        }
        if (begins && is_lock && !strchr("-0123456789", *text)) {
            is_lock = false;
        } else if (begins && !memchr(text, '=', n) && !strchr("-$0123456789", *text)) {
            if (!first) {
                first = text;
                n_first = n;
            }
            is_lock = is_flock(text, n);
            is_quoted = is_quoted || is_lock;
            begins = is_lock || is_one_of(wrappers, text, n);
            if (!begins && !is_one_of(tests, text, n)) {
                *ret_n = n;
                return text;
            }
        }
        text += n;
    }
    *ret_n = n_first;
    return first ? first : "";
}

/* Appends the base name of a word of n bytes to the prefix, without characters that names cannot have. */
static void make_name(char name[static NAME_MAX_LENGTH + 1], const char *prefix, const char *word,
                      size_t n) {
    const char *slash = memrchr(word, '/', n);
    size_t at = (size_t) snprintf(name, NAME_MAX_LENGTH + 1, "%.40s-", prefix), begin = at;

    if (slash && slash + 1 < word + n) {
        n -= (size_t) (slash + 1 - word);
        word = slash + 1;
    }
    for (size_t i = 0; i < n && at < NAME_MAX_LENGTH - 6; i++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", word[i]))
            name[at++] = word[i];
    name[at] = '\0';
    if (at == begin)
        memcpy(name + at, "job", sizeof("job"));
}

void import_name(char ret[static NAME_MAX_LENGTH + 1], const char *prefix, const char *identifier, const char *command) {
    size_t n;
    const char *word = identifier ? identifier : find_command(command, &n);

    make_name(ret, prefix, word, identifier ? strlen(word) : n);
}

/* --- names that are taken --- */

struct taken {
    char name[NAME_MAX_LENGTH + 1];
    unsigned next; /* the number that the next job of this name gets */
};

static int compare_taken(const void *a, const void *b) {
    return strcmp(((const struct taken *) a)->name, ((const struct taken *) b)->name);
}

/* Finds or adds; NULL: out of memory. */
static struct taken *take(struct import *import, const char *name, bool *ret_is_new) {
    struct taken *new = calloc(1, sizeof(*new)), **found;

    if (!new)
        return NULL;
    new->next = 2;
    memcpy(new->name, name, strlen(name) + 1);
    found = tsearch(new, &import->names, compare_taken);
    *ret_is_new = found && *found == new;
    if (!*ret_is_new)
        free(new);
    return found ? *found : NULL;
}

int import_take_name(struct import *import, char name[static NAME_MAX_LENGTH + 1]) {
    bool is_new;
    struct taken *base = take(import, name, &is_new);

    while (base && !is_new) {
        snprintf(name, NAME_MAX_LENGTH + 1, "%.57s-%u", base->name, base->next++);
        if (!take(import, name, &is_new))
            return -ENOMEM;
    }
    return base ? 0 : -ENOMEM;
}

void import_done(struct import *import) {
    tdestroy(import->names, free);
    import->names = NULL;
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* The command line: one table of verbs, and what they share. A verb gets its arguments as main() does, argv[0] is its name, and
 * returns the exit status (berth(1), EXIT STATUS). Which file has which:
 *     verbs.c    the table, help, the options before the verb
 *     options.c  a verb's own options
 *     show.c     pools, hosts, jobs, runs      act.c     stop, reload, revoke, grace, drain
 *     start.c    start
 *     limit.c    limit, pause, resume          check.c   check-config, version
 *     history.c  history                       audit.c   audit                    logs.c  logs */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define _cleanup_json_ _cleanup_(json_decrefp)

struct verb {
    const char *name;
    int (*fn)(int argc, char **argv);
    const char *line; /* in `berth help` */
    const char *help; /* `berth help VERB`: its usage first */
};

/* All of `berth`; what main() returns. */
int cli_main(int argc, char **argv);
/* NULL: there is none of that name. */
const struct verb *verb_find(const char *name);

/* --- options.c --- */

#define WORD_LIST_MAX 64

struct word_list {
    const char *items[WORD_LIST_MAX];
    size_t n;
};

struct verb_option {
    const char *name;       /* "--json" */
    bool *flag;             /* set when it is there; or */
    const char **value;     /* its value (the next word, or after '='); or */
    struct word_list *list; /* the values, if it may be given several times */
};

/* Takes the options out of argv, wherever they stand before a "--"; what is left are the words, argv[1] to argv[*ret_words]. 0; else
 * the verb is over: *ret_status is what it exits with (a wrong usage was explained, or --help printed). */
int options_parse(int argc, char **argv, const struct verb_option *options, size_t n_options, int min_words, int max_words,
                  int *ret_words, int *ret_status);
#define WORDS_ANY 1000000

/* The option nearest to an unknown one, or NULL. A short option is near, too, if what was typed is a long name that other programs
 * have for it ("--follow": -f). */
const char *option_nearest(const char *verb, const char *written, const char *const *known, size_t n_known);

/* Says on standard error what is wrong with what was typed, without what in that a terminal would obey; EXIT_USAGE. */
int refuse_usage(const char *format, ...) _printf_(1, 2);
/* "berth VERB: ..." and how it is used; EXIT_USAGE. */
int wrong_usage(const char *verb, const char *format, ...) _printf_(2, 3);
/* A name that cannot be one: explained, EXIT_USAGE; else 0. kind: "pool". */
int check_name(const char *verb, const char *kind, const char *name);
/* A duration in milliseconds. 0 or EXIT_USAGE. */
int parse_msec(const char *verb, const char *option, const char *text, json_int_t *ret);

/* A time as of cli/when.h, of now. NULL is left alone. 0 or EXIT_USAGE. */
int parse_when(const char *verb, const char *option, const char *text, usec_t *ret);

/* --- show.c --- */

/* As it is: it has "schema" already. 0 or EXIT_INTERNAL. */
int print_json(const json_t *document);
/* nothing: said on standard error where the table is empty. 0 or EXIT_INTERNAL, explained. */
/* Says what must be known to read the numbers of Pools and Hosts: Redis is away, grace. */
void tell_doubt(const json_t *answer);
/* A pool's override: "0 until cleared (backup)", "2, ends in 5m10s"; "" if there is none. buffer: WORDS_SIZE. */
const char *override_text(const json_t *pool, char *buffer);
struct table;
int print_table(struct table *t, const char *nothing);
int no_table(int r);

/* --- act.c --- */

/* What berthd takes these names for (io.berth.Find): an item {"target", "is_job"} for each, if all are known. 0, or an exit status,
 * explained. */
int find_names(const char *verb, char **names, int n, json_t **ret_found);

/* --- the verbs --- */

int verb_start(int argc, char **argv);
int verb_stop(int argc, char **argv);
int verb_jobs(int argc, char **argv);
int verb_runs(int argc, char **argv);
int verb_pools(int argc, char **argv);
int verb_hosts(int argc, char **argv);
int verb_limit(int argc, char **argv);
int verb_pause(int argc, char **argv);
int verb_resume(int argc, char **argv);
int verb_revoke(int argc, char **argv);
int verb_grace(int argc, char **argv);
int verb_reload(int argc, char **argv);
int verb_drain(int argc, char **argv);
int verb_undrain(int argc, char **argv);
int verb_history(int argc, char **argv);
int verb_audit(int argc, char **argv);
int verb_logs(int argc, char **argv);
int verb_check_config(int argc, char **argv);
int verb_version(int argc, char **argv);

/* What a finished run (io.berth's Run) means for `berth start --wait`. */
int run_exit_status(const json_t *run);

/* SPDX-License-Identifier: MIT */
#pragma once

/* The command line: one table of verbs, and what verbs share. A verb gets its arguments as main() does, with
 * its name in argv[0], and returns the exit status (berth(1), EXIT STATUS). */

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define _cleanup_json_ _cleanup_(json_decrefp)

struct verb {
    const char *name;
    int (*fn)(int argc, char **argv);
    int min_words, max_words; /* run counts its own */
    const char *line;         /* in `berth help` */
    const char *help;         /* of `berth help VERB`: the usage first */
};

/* Runs `berth`. Returns the exit status. */
int cli_main(int argc, char **argv);
/* Returns NULL if no verb has that name. */
const struct verb *verb_find(const char *name);

/* --- options.c --- */

#define STRING_LIST_MAX 64

struct string_list {
    const char *items[STRING_LIST_MAX];
    size_t n;
};

struct verb_option { /* one of flag, value, list */
    bool is_text;             /* the value goes to berthd, so it must be UTF-8 */
    const char *name;         /* "--json" */
    bool *flag;               /* set if the option is given */
    const char **value;       /* the next word, or the text after '=' */
    struct string_list *list; /* the values of an option that may be repeated */
};
#define OPTION_FLAG(n, target) {.name = (n), .flag = (target)}
#define OPTION_VALUE(n, target) {.name = (n), .value = (target)}
#define OPTION_TEXT(n, target) {.name = (n), .value = (target), .is_text = true}
#define OPTION_LIST(n, target) {.name = (n), .list = (target)}

/* Takes the options before a "--" out of argv. Returns the number of words that are left, argv[1] to
 * argv[n]; the row of the verb allows that number. Negative: the verb ends with *ret_status (usage or --help
 * was printed). */
int options_parse(int argc, char **argv, const struct verb_option *options, size_t n_options, int *ret_status);
#define WORDS_ANY INT_MAX

/* Returns the option nearest to an unknown one, or NULL. For "--follow", the long name that other programs
 * have, that is "-f". */
const char *option_nearest(const char *verb, const char *written, const char *const *known, size_t n_known);

/* These print an error on standard error, without control characters, and return EXIT_USAGE. */
int options_refuse(const char *format, ...) _printf_(1, 2);
int options_wrong_usage(const char *verb, const char *format, ...) _printf_(2, 3); /* and the verb's usage */
/* These return 0, or EXIT_USAGE after they have explained why. */
int options_check_pool(const char *verb, const char *name);
int options_check_job(const char *verb, const char *kind /* "job" */,
                      const char *name); /* a template, too */
int options_check_name(const char *verb, const char *kind /* "pool" */, const char *name);
int options_parse_msec(const char *verb, const char *option, const char *text, json_int_t *ret); /* a duration, in ms */
int options_parse_when(const char *verb, const char *option, const char *text, usec_t *ret);     /* as when_parse(); NULL: untouched */

/* --- pools.c --- */

/* Formats the override of a pool: "0 (backup)", "2, ends in 5m10s"; "": none. buffer: FORMAT_SIZE. */
const char *override_text(const json_t *pool, char *buffer);

/* --- act.c --- */

/* Stores what the names mean to berthd (io.berth.Find): an item {"target", "is_job"} for each. set:
 * parameters that the jobs must accept (io.berth.Start), or NULL. Returns 0, or an exit status whose reason
 * was printed. */
int find_names(const char *verb, char **names, int n, json_t *set, json_t **ret_found);

/* --- the verbs --- */

int verb_start(int argc, char **argv);
int verb_stop(int argc, char **argv);
int verb_jobs(int argc, char **argv);
int verb_runs(int argc, char **argv);
int verb_explain(int argc, char **argv);
int verb_pools(int argc, char **argv);
int verb_hosts(int argc, char **argv);
int verb_metrics(int argc, char **argv);
int verb_watch(int argc, char **argv);
int verb_redis(int argc, char **argv);
int verb_limit(int argc, char **argv);
int verb_pause(int argc, char **argv);
int verb_resume(int argc, char **argv);
int verb_revoke(int argc, char **argv);
int verb_move(int argc, char **argv);
int verb_steal(int argc, char **argv);
int verb_grace(int argc, char **argv);
int verb_reload(int argc, char **argv);
int verb_drain(int argc, char **argv);
int verb_undrain(int argc, char **argv);
int verb_history(int argc, char **argv);
int verb_audit(int argc, char **argv);
int verb_logs(int argc, char **argv);
int verb_next(int argc, char **argv);
int verb_import_crontab(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_check_config(int argc, char **argv);
int verb_version(int argc, char **argv);

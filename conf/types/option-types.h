/* SPDX-License-Identifier: MIT */
#pragma once

/* The types of options, and the field that each sets. */

#include "conf/options.h"

/* conf/types/option-types.c */
extern const struct option_type option_duration; /* usec_t; none: USEC_INFINITY */
extern const struct option_type option_number;   /* uint32_t; none: 0 */
extern const struct option_type option_integer;  /* int, may be negative; none: JOB_INHERIT */
extern const struct option_type option_size;     /* uint64_t, bytes; none: 0 */
extern const struct option_type option_umask;    /* mode_t */
extern const struct option_type option_bool;     /* bool */
extern const struct option_type option_signal;   /* int */
extern const struct option_type option_scope;    /* enum pool_scope */
extern const struct option_type option_overlap;  /* enum job_overlap */
extern const struct option_type option_on;       /* enum job_on */
extern const struct option_type option_on_lease_lost;
extern const struct option_type option_restart;  /* enum job_restart */
extern const struct option_type option_io_class; /* enum job_io_class */
extern const struct option_type option_tls_minimum; /* enum tls_minimum */
/* Returns the signal of this name, with or without SIG. 0: there is none, and *ret_near is the nearest name,
 * or NULL. */
int option_find_signal(const char *name, const char **ret_near);

/* conf/types/option-texts.c; fields of type char * are owned */
extern const struct option_type option_name;    /* char [NAME_MAX_LENGTH + 1] */
extern const struct option_type option_text;    /* char * */
extern const struct option_type option_path;    /* char *, absolute */
extern const struct option_type option_directory; /* char *, absolute, or "~" */
extern const struct option_type option_script;  /* char *, may have newlines and tabs */
extern const struct option_type option_stdin;   /* char *, absolute; "": "null" */
extern const struct option_type option_account; /* char *, a user's or group's name; "": nobody */
extern const struct option_type option_group;   /* struct account */
extern const struct option_type option_output;  /* struct job_output */
extern const struct option_type option_server_name; /* char *, a host name or an address; "": none */
extern const struct option_type option_url;     /* struct redis_settings: several fields of it */

/* conf/types/option-lists.c */
void option_free_list(void *at); /* struct option_type.done of a list of texts */
extern const struct option_type option_command;     /* char **, NULL-terminated */
extern const struct option_type option_environment; /* the same */
extern const struct option_type option_files;       /* char **: paths, with "-" before one that may be missing */
extern const struct option_type option_credentials; /* char **: NAME or NAME=/path */
extern const struct option_type option_demands;     /* struct demands */
extern const struct option_type option_accounts;    /* struct accounts */
extern const struct option_type option_sentinels;   /* char *, "host[:port],..."; NULL: none */

/* conf/types/option-parameters.c */
extern const struct option_type option_parameters; /* char **, NULL-terminated, or NULL */
extern const struct option_type option_instances;  /* sets nothing: conf/expand.c has used it already */
extern const struct option_type option_open_instances; /* the same */

/* conf/types/option-when.c */
extern const struct option_type option_zone;     /* struct zone_setting */
extern const struct option_type option_schedule; /* struct schedule: its entries; frees all of it */
extern const struct option_type option_except;   /* struct schedule: its exceptions */

/* conf/types/option-rlimits.c */
extern const struct option_type option_rlimits; /* struct rlimits */

/* conf/types/option-chain.c */
extern const struct option_type option_retry_on;  /* struct retry_rules */
extern const struct option_type option_statuses;  /* struct exit_statuses */
extern const struct option_type option_job_names; /* char **, NULL-terminated; the jobs may not exist */
extern const struct option_type option_hosts;     /* char **, NULL-terminated names */

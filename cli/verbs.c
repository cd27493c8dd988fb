/* SPDX-License-Identifier: MIT */
/* The table of verbs; `berth help` is printed from it. */
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/client.h"
#include "cli/run/run.h"

static int verb_help(int argc, char **argv);

static const struct verb verbs[] = {
    {"run", verb_run, "run a command while it holds permits", verb_run_help},
    {"start", verb_start, "start jobs now",
     "berth start JOB... [--wait]\n"
     "\n"
     "Starts the jobs and prints the id of each run. If one of the names is wrong,\n"
     "nothing is started.\n"
     "\n"
     "  --wait   wait until the runs are over, and exit as the command did (the\n"
     "           first one that failed); 75: skipped, refused or waited too long;\n"
     "           76: lease lost; 124: timeout; 125: not started\n"},
    {"stop", verb_stop, "stop runs, waiting or running",
     "berth stop JOB|RUN|LABEL...\n"
     "\n"
     "Stops all runs of a job, or one run: by its id (`berth runs`) or the first\n"
     "digits of it, four at least, or by the LABEL of its `berth run --name`. A\n"
     "waiting run is withdrawn, a command gets its stop signal. If one of the names\n"
     "is wrong, or can be several runs, nothing is stopped.\n"},
    {"jobs", verb_jobs, "defined jobs of this host",
     "berth jobs [--json]\n"
     "\n"
     "The jobs that this host's config defines: state, last result, when they run\n"
     "next.\n"},
    {"runs", verb_runs, "runs of this host",
     "berth runs [JOB|RUN|LABEL...] [--json] [--all]\n"
     "\n"
     "What waits (and for what) and what runs on this host; of the names given only.\n"
     "A RUN may be given by its first digits, four at least.\n"
     "\n"
     "  --all    finished runs, too\n"},
    {"pools", verb_pools, "pools of the cluster: limit, used, waiting",
     "berth pools [POOL...] [--json]\n"
     "\n"
     "The pools, cluster-wide. Of those that are named also who holds permits and\n"
     "who waits for them. DIFFER: hosts declare different limits.\n"},
    {"hosts", verb_hosts, "live hosts of the cluster",
     "berth hosts [--json]\n"
     "\n"
     "The hosts whose sessions live, when each was heard last, and the limits it\n"
     "declares that are not the one in force.\n"},
    {"limit", verb_limit, "show a pool's limit, or override it",
     "berth limit POOL\n"
     "berth limit POOL N [--for DURATION] [--reason TEXT]\n"
     "berth limit POOL --clear\n"
     "\n"
     "Shows the limit in force, its override, and which hosts declare what. With N\n"
     "(0 to 1000000) it overrides what the configs declare, on all hosts, until it\n"
     "is cleared or the time is over. A lower limit stops nobody.\n"},
    {"pause", verb_pause, "grant nothing more of a pool",
     "berth pause POOL... [--for DURATION] [--reason TEXT]\n"
     "\n"
     "Overrides the limit with 0: nothing more is granted. What runs goes on. It\n"
     "ends with `berth resume`, or by itself when the time is over.\n"},
    {"resume", verb_resume, "end a pause",
     "berth resume POOL...\n"
     "\n"
     "Ends a pause; what it replaced is in force again.\n"},
    {"revoke", verb_revoke, "take a run's permits away, on any host",
     "berth revoke RUN [--reason TEXT]\n"
     "\n"
     "The run's host stops it and gives its permits back. What a host held that is\n"
     "gone is freed. RUN: its id as `berth pools POOL` shows it, or the first digits\n"
     "of it, four at least.\n"},
    {"grace", verb_grace, "end the grace of a new namespace",
     "berth grace --end\n"
     "\n"
     "After Redis restarted or lost its data nothing is granted for one lease, until\n"
     "all hosts have told what they hold. This ends it at once: only for a namespace\n"
     "that is known to be new, or limits may be exceeded.\n"},
    {"drain", verb_drain, "take nothing new on this host",
     "berth drain [--wait]\n"
     "\n"
     "This host begins no run any more, also after a restart of berthd, until\n"
     "`berth undrain`. What waits here is withdrawn (75), what runs goes on.\n"
     "\n"
     "  --wait   wait until the last run is over\n"},
    {"undrain", verb_undrain, "take work on this host again", "berth undrain\n"},
    {"reload", verb_reload, "read the config again",
     "berth reload\n"
     "\n"
     "Waits for the result. A config with errors changes nothing: they are printed,\n"
     "78.\n"},
    {"logs", verb_logs, "what a job or a run wrote",
     "berth logs JOB|RUN [-f] [-n N] [--since TIME] [--utc]\n"
     "                   [--directory DIR | -m] [--unit UNIT]\n"
     "\n"
     "The output of a job (output = \"journal\"), or of one of its runs: RUN is an id,\n"
     "or the first digits of it, four at least. Lines are attributed to runs by\n"
     "cgroup. `berth run` leaves its command's output to the caller. Needs no berthd.\n"
     "\n"
     "  -n N             the last N lines\n"
     "  -f               go on with what is written from now on\n"
     "  --since TIME     from then on: today, -2h, \"2026-11-20 14:00\", ...\n"
     "  --utc            times in UTC, not in local time\n"
     "  --directory DIR  the journal files in DIR\n"
     "  -m               all journals that were collected on this machine\n"
     "  --unit UNIT      the unit whose berthd is meant (berthd.service)\n"},
    {"history", verb_history, "runs, as the journal has them",
     "berth history [JOB|RUN|LABEL...] [--pool POOL] [--since TIME] [--until TIME]\n"
     "              [--utc] [--directory DIR... | -m] [--unit UNIT] [--json]\n"
     "\n"
     "One line a run, from boot to boot: when it began, where, how long it waited\n"
     "and ran, how it ended; of the names given only. A RUN may be given by its first\n"
     "digits, four at least. 65: there is no such journal, or it cannot be read.\n"
     "Needs no berthd.\n"
     "\n"
     "  --pool POOL      runs that needed permits of it\n"
     "  --since TIME, --until TIME\n"
     "                   today, yesterday, -2h, \"2 hours ago\", 14:00, 2026-11-20,\n"
     "                   \"2026-11-20 14:00\", as journalctl takes them\n"
     "  --utc            times in UTC, not in local time; --json has UTC always\n"
     "  --directory DIR  the journal files in DIR\n"
     "  -m               all journals that were collected on this machine\n"
     "  --unit UNIT      the unit whose berthd is meant (berthd.service)\n"},
    {"audit", verb_audit, "prove from journals that the limits were kept",
     "berth audit [--directory DIR... | -m] [--since TIME] [--limit POOL=N...]\n"
     "            [-c CONFIG] [--tolerance DURATION] [--unit UNIT] [--json]\n"
     "\n"
     "Replays the events of one or many hosts, which must be all that share the\n"
     "pools: use never above the limit in force, grants in the order of tickets and\n"
     "head starts, tokens that grow, every grant ended, no entry missing.\n"
     "0: proved; 1: each violation is named with its entry; 65: a journal is not\n"
     "there, cannot be read, or has no events.\n"
     "\n"
     "  --since TIME     judge only what happened since then\n"
     "  --limit POOL=N   the limit, whatever the journals tell\n"
     "  -c CONFIG        for pools of whose limit the journals tell nothing\n"
     "  --tolerance DURATION\n"
     "                   for the clocks of hosts (100ms)\n"
     "  --directory DIR  the journal files in DIR\n"
     "  -m               all journals that were collected on this machine\n"
     "  --unit UNIT      the unit whose berthd is meant (berthd.service)\n"},
    {"check-config", verb_check_config, "check a config file",
     "berth check-config [FILE]\n"
     "\n"
     "Reads FILE (default: /etc/berth/berth.conf) and FILE.d/*.conf: all their\n"
     "errors, 78, or what is in them, 0. Needs no berthd.\n"},
    {"version", verb_version, "versions of berth and berthd",
     "berth version\n"
     "\n"
     "The version of this program, and of berthd if it can be reached.\n"},
    {"help", verb_help, "this, or the help of a verb", "berth help [VERB]\n"},
};

const struct verb *verb_find(const char *name) {
    for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static void print_help(FILE *f) {
    fputs("berth [--socket PATH] VERB ...\n"
          "\n"
          "Runs commands and jobs on many hosts without ever exceeding what they share.\n"
          "\n",
          f);
    for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
        fprintf(f, "  %-14s %s\n", verbs[i].name, verbs[i].line);
    fputs("\n"
          "`berth help VERB` tells more.\n"
          "--socket PATH or BERTH_SOCKET: berthd's control socket\n"
          "(" CLIENT_SOCKET_DEFAULT ").\n",
          f);
}

static int unknown_verb(const char *name) {
    const char *known[ELEMENTSOF(verbs)], *near;

    for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
        known[i] = verbs[i].name;
    near = nearest(name, known, ELEMENTSOF(known));
    if (near)
        return refuse_usage("unknown verb \"%.100s\"; did you mean \"%s\"? `berth help` lists them all", name, near);
    return refuse_usage("unknown verb \"%.100s\"; `berth help` lists them all", name);
}

static int verb_help(int argc, char **argv) {
    const struct verb *verb;
    int words, status;

    if (options_parse(argc, argv, NULL, 0, 0, 1, &words, &status) != 0)
        return status;
    if (words == 0) {
        print_help(stdout);
        return 0;
    }
    verb = verb_find(argv[1]);
    if (!verb)
        return unknown_verb(argv[1]);
    fputs(verb->help, stdout);
    return 0;
}

/* The options before the verb. The index of the verb; 0: it is over, with *ret_status. */
static int find_verb(int argc, char **argv, int *ret_status) {
    int i;

    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--socket") == 0 && i + 1 < argc) {
            client_set_socket(argv[++i]);
        } else if (strncmp(argv[i], "--socket=", 9) == 0 && argv[i][9]) {
            client_set_socket(argv[i] + 9);
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(stdout);
            *ret_status = 0;
            return 0;
        } else if (strcmp(argv[i], "--version") == 0) {
            puts("berth " VERSION);
            *ret_status = 0;
            return 0;
        } else {
            *ret_status = strncmp(argv[i], "--socket", 8) == 0
                              ? refuse_usage("--socket needs a path")
                              : refuse_usage("unknown option \"%.100s\" before the verb; `berth help` tells more", argv[i]);
            return 0;
        }
    }
    if (i < argc)
        return i;
    print_help(stderr);
    *ret_status = EXIT_USAGE;
    return 0;
}

/* What could not be written must not look as if it had been (a full disk, say). */
static int finish(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "berth: standard output: %s\n", strerror(errno));
    return status != 0 ? status : EXIT_INTERNAL;
}

int cli_main(int argc, char **argv) {
    const struct verb *verb;
    int status = 0, i = find_verb(argc, argv, &status);

    if (i == 0)
        return finish(status);
    verb = verb_find(argv[i]);
    return finish(verb ? verb->fn(argc - i, argv + i) : unknown_verb(argv[i]));
}

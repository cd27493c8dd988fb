/* SPDX-License-Identifier: MIT */
/* The table of verbs; `berth help` is printed from it. */
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/standard-fds.h"
#include "cli/client.h"
#include "cli/run/run.h"

static int verb_help(int argc, char **argv);

static const struct verb verbs[] = {
    {"run", verb_run, 0, 0, "run a command while it holds permits", verb_run_help},
    {"start", verb_start, 1, WORDS_ANY, "start jobs now",
     "berth start JOB... [--set NAME=VALUE]... [--wait]\n"
     "\n"
     "Starts the jobs and prints the id of each run. If one of the names is wrong,\n"
     "or one of the jobs does not accept what is set, nothing is started.\n"
     "\n"
     "  --set    set a parameter of the jobs (berth.conf(5), parameters) for this run\n"
     "  --wait   wait until the runs are over, and exit with the first status that\n"
     "           is not 0: the command's, or 75 (skipped, refused, waited too long),\n"
     "           76 (lease lost), 124 (timeout), 125 (not started)\n"},
    {"stop", verb_stop, 1, WORDS_ANY, "stop waiting or running runs",
     "berth stop JOB|RUN|LABEL... [--wait]\n"
     "\n"
     "Stops all runs of a JOB, or one run. RUN is its id (see `berth runs`) or at\n"
     "least four leading digits of it; LABEL is the name given to `berth run --name`.\n"
     "A waiting run is withdrawn, a running command gets its stop signal. If one of\n"
     "the names is wrong or ambiguous, nothing is stopped.\n"
     "\n"
     "  --wait   wait until the runs of this host are over\n"},
    {"jobs", verb_jobs, 0, WORDS_ANY, "list the jobs of this host",
     "berth jobs [JOB...] [--json]\n"
     "\n"
     "Lists the jobs that this host's config defines: state, last result, next run.\n"
     "A template (NAME@) stands for all its instances.\n"},
    {"next", verb_next, 0, WORDS_ANY, "show when jobs begin, or a schedule is due",
     "berth next [JOB...] [--count N] [--from TIME] [--json]\n"
     "berth next -e ENTRY... [-z ZONE] [--except ENTRY...] [--count N] [--from TIME]\n"
     "           [--json]\n"
     "\n"
     "Lists what begins next on this host, soonest first: all jobs together, or N of\n"
     "each JOB. With -e it lists the due times of an entry of `schedule` such as\n"
     "\"30 2 * * mon-fri\", without berthd. A wrong entry: exit status 65.\n"
     "\n"
     "  -e ENTRY         an entry of `schedule`; may be given several times\n"
     "  -z ZONE          by the clock of that zone (local)\n"
     "  --except ENTRY   not at these times; may be given several times\n"
     "  --count N        the next N times, 1 to 10000 (10)\n"
     "  --from TIME      after this time: now, tomorrow, +2h, \"2026-11-20 14:00\", ...\n"},
    {"runs", verb_runs, 0, WORDS_ANY, "list the runs of this host",
     "berth runs [JOB|RUN|LABEL...] [--json] [--all | --cluster]\n"
     "\n"
     "Lists the waiting runs (and the reason) and the running ones of this host, all\n"
     "or those named. RUN is an id or at least four leading digits of it.\n"
     "\n"
     "  --all      list finished runs, too\n"
     "  --cluster  list the runs of all hosts that hold permits or wait for them\n"},
    {"explain", verb_explain, 1, 1, "show why a run waits, and what would start it",
     "berth explain JOB|RUN|LABEL [--no-estimate] [--json]\n"
     "\n"
     "Shows what a waiting run waits for in each of its pools: who holds the permits,\n"
     "and which claims are before it. \"start\" estimates when it starts, from the last\n"
     "runs of the names before it. \"sooner\" lists commands that would help.\n"
     "RUN may be a run of another host that holds permits or waits.\n"
     "\n"
     "  --no-estimate    leave out \"start\"\n"},
    {"pools", verb_pools, 0, WORDS_ANY, "list pools: limit, used, waiting",
     "berth pools [POOL...] [--json]\n"
     "\n"
     "Lists the pools of the cluster. If a POOL is named, its holders and waiting\n"
     "claims are listed, too. DIFFER: hosts declare different limits.\n"},
    {"hosts", verb_hosts, 0, 0, "list the live hosts of the cluster",
     "berth hosts [--json]\n"
     "\n"
     "Lists the hosts with a live session, the time since each was last seen, and\n"
     "declared limits that differ from those in force.\n"},
    {"redis", verb_redis, 0, 0, "show which Redis berthd uses, and what is risky about it",
     "berth redis [--json]\n"
     "berth redis --accept\n"
     "\n"
     "Shows what berthd knows of its Redis: address, version, role, round trip, how\n"
     "long jobs go on without it, and warnings. Asks Redis nothing.\n"
     "Exit status: 0 all is well, 1 there are warnings, 69 Redis is away.\n"
     "\n"
     "  --accept   join another namespace of this name (event namespace-differs), if\n"
     "             Redis was replaced on purpose. What this host holds counts as\n"
     "             lost.\n"},
    {"metrics", verb_metrics, 0, 0, "print what berthd has counted, for Prometheus",
     "berth metrics [--cluster] [--format prometheus|openmetrics] [--output FILE]\n"
     "\n"
     "Prints the figures of this host: runs and their results, waits and holds, its\n"
     "pools, Redis, events. Counters begin when berthd starts.\n"
     "\n"
     "  --cluster       also pools and hosts of the cluster: for one or two hosts\n"
     "  --format        prometheus (text 0.0.4) or openmetrics (1.0.0)\n"
     "  --output FILE   replace FILE, for the textfile collector of node-exporter. If\n"
     "                  berthd is away, FILE says berth_up 0, and exit status is 0.\n"},
    {"watch", verb_watch, 0, 0, "print the events of this host as they happen",
     "berth watch [--json] [--events NAME[,NAME]...] [--pool POOL]... [--job JOB]...\n"
     "            [--cluster] [--since DAEMON:SEQ] [-n COUNT] [--timeout DURATION]\n"
     "\n"
     "Prints a line for each event of this host (berth-events(7)) from now on, until\n"
     "it is interrupted. A line \"gap\" counts events that berth read too late.\n"
     "Waits a minute for a berthd that restarts, then goes on.\n"
     "\n"
     "  --events NAME        only these events: granted,exited\n"
     "  --pool POOL          only events of runs that need POOL, or about POOL\n"
     "  --job JOB            only events of JOB, or of `berth run --name JOB`\n"
     "  --cluster            also what pictures of the cluster show, one each second:\n"
     "                       seen-held seen-freed seen-waiting seen-gone seen-limit\n"
     "                       seen-host seen-host-gone\n"
     "  --since DAEMON:SEQ   begin after this event, as \"at\" of --json names it\n"
     "  -n COUNT             end after COUNT events\n"
     "  --timeout DURATION   end after DURATION: 0 if an event was printed, else 75\n"},
    {"limit", verb_limit, 1, 2, "show or override a pool's limit",
     "berth limit POOL\n"
     "berth limit POOL N [--for DURATION] [--reason TEXT]\n"
     "berth limit POOL --clear\n"
     "\n"
     "Shows the limit in force, its override, and the limits that hosts declare.\n"
     "With N (0 to 1000000) it overrides the declared limits on all hosts, until the\n"
     "override is cleared or DURATION has passed. A lower limit stops no run.\n"},
    {"pause", verb_pause, 1, WORDS_ANY, "stop granting permits of a pool",
     "berth pause POOL... [--for DURATION] [--reason TEXT]\n"
     "\n"
     "Overrides the limit with 0: no more permits are granted, running commands go\n"
     "on. The pause ends with `berth resume`, or when DURATION has passed.\n"},
    {"resume", verb_resume, 1, WORDS_ANY, "end a pause",
     "berth resume POOL...\n"
     "\n"
     "Ends a pause. An override that the pause replaced is in force again.\n"},
    {"move", verb_move, 1, 1, "move a waiting run to another place in its queues",
     "berth move RUN --first [--reason TEXT] [--json]\n"
     "berth move RUN --before RUN [--reason TEXT] [--json]\n"
     "berth move RUN --by DURATION [--reason TEXT] [--json]\n"
     "\n"
     "Gives a waiting run of any host a head start, so that it is first in all its\n"
     "queues, or right before another run in the queues that they share. --by adds\n"
     "DURATION to the head start; -DURATION takes back earlier moves. A move concerns\n"
     "this run alone. `berth audit` lists all moves with their users.\n"
     "RUN is a name, an id, or at least four leading digits of an id.\n"},
    {"steal", verb_steal, 1, 1, "stop a run so that another one gets its permits",
     "berth steal RUN --for RUN [--reason TEXT] [--yes]\n"
     "\n"
     "Moves the second run to the front of its queues, then stops the first one, on\n"
     "any host. On a terminal it asks first, unless --yes is given. Without --yes it\n"
     "refuses if the permits of the first run do not suffice (exit status 75).\n"},
    {"revoke", verb_revoke, 1, 1, "take a run's permits away, on any host",
     "berth revoke RUN [--reason TEXT]\n"
     "\n"
     "The run's host stops it and releases its permits. If that host is gone, the\n"
     "permits are freed at once. RUN is an id as `berth pools POOL` shows it, or at\n"
     "least four leading digits of it.\n"},
    {"grace", verb_grace, 0, 0, "end the grace period of a new namespace",
     "berth grace --end\n"
     "\n"
     "After Redis restarted or lost its data, nothing is granted for one lease or\n"
     "longer, so that hosts can report what they hold. This ends the grace period at\n"
     "once. Use it only for a namespace that is known to be new: else limits may be\n"
     "exceeded.\n"},
    {"drain", verb_drain, 0, 0, "begin no more runs on this host",
     "berth drain [--wait]\n"
     "\n"
     "This host begins no more runs until `berth undrain`, even after a restart of\n"
     "berthd. Waiting runs are withdrawn (75), running ones go on.\n"
     "\n"
     "  --wait   wait until the last run is over\n"},
    {"undrain", verb_undrain, 0, 0, "begin runs on this host again", "berth undrain\n"},
    {"reload", verb_reload, 0, 0, "read the config again",
     "berth reload\n"
     "\n"
     "Reads the config and waits for the result. If the config has errors, they are\n"
     "printed, nothing changes, and the exit status is 78. If Redis cannot be used\n"
     "with its new certificates, user or password, standard error says why (0).\n"},
    {"logs", verb_logs, 1, WORDS_ANY, "show the output of jobs or runs",
     "berth logs JOB|RUN... [-f] [-n N] [--events] [--since TIME] [--utc]\n"
     "                      [--directory DIR | -m] [--unit UNIT]\n"
     "\n"
     "Shows the output of jobs (output = \"journal\") or of some of their runs. RUN is\n"
     "an id or at least four leading digits of it. Lines are attributed to runs by\n"
     "cgroup. The output of `berth run` goes to its caller. Needs no berthd.\n"
     "\n"
     "  -n N             the last N lines\n"
     "  -f               follow: print new lines as they are written\n"
     "  --events         what berthd did with the runs, too\n"
     "  --since TIME     lines since then: today, -2h, \"2026-11-20 14:00\", ...\n"
     "  --utc            times in UTC, not in local time\n"
     "  --directory DIR  the journal files in DIR\n"
     "  -m               all journals that this machine has collected\n"
     "  --unit UNIT      berthd's unit (berthd.service)\n"},
    {"history", verb_history, 0, WORDS_ANY, "list past runs from the journal",
     "berth history [JOB|RUN|LABEL...] [--stats [--by job|pool|host]] [--pool POOL]\n"
     "              [--since TIME] [--until TIME] [--utc]\n"
     "              [--directory DIR... | -m] [--unit UNIT] [--json]\n"
     "berth history --use [POOL...] [--step DURATION] [--since TIME] [--until TIME]\n"
     "              [--utc]\n"
     "              [--directory DIR... | -m] [--unit UNIT] [--json]\n"
     "\n"
     "Lists runs, across boots: start, host, time waited, time run, result; all or\n"
     "those named. RUN is an id or at least four leading digits of it. The exit\n"
     "status is 65 if there is no such journal or it cannot be read. Needs no berthd.\n"
     "\n"
     "  --stats          figures of the runs that ended: a line a job, pool or host\n"
     "  --use            use of each pool over the time, in 24 bars\n"
     "  --step DURATION  the time of each bar\n"
     "  --pool POOL      runs that needed permits of POOL\n"
     "  --since TIME, --until TIME\n"
     "                   today, yesterday, -2h, \"2 hours ago\", 14:00, 2026-11-20,\n"
     "                   \"2026-11-20 14:00\", as in journalctl\n"
     "  --utc            times in UTC, not in local time; --json always has UTC\n"
     "  --directory DIR  the journal files in DIR\n"
     "  -m               all journals that this machine has collected\n"
     "  --unit UNIT      berthd's unit (berthd.service)\n"},
    {"audit", verb_audit, 0, 0, "prove from journals that the limits were kept",
     "berth audit [--directory DIR... | -m] [--since TIME] [--limit POOL=N...]\n"
     "            [-c CONFIG] [--tolerance DURATION] [--no-moves] [--unit UNIT]\n"
     "            [--json]\n"
     "\n"
     "Replays the events of all hosts that share the pools and checks: use within the\n"
     "limit in force, grants in the order of tickets and head starts, growing tokens,\n"
     "an end for every grant, no missing entry.\n"
     "Exit status: 0 proved, 1 violations (each is printed with its entry), 65 a\n"
     "journal is missing, cannot be read, or has no events.\n"
     "\n"
     "  --since TIME     check only entries since then\n"
     "  --limit POOL=N   the limit, whatever the journals say\n"
     "  -c CONFIG        limits of pools that the journals do not name\n"
     "  --tolerance DURATION\n"
     "                   allowed difference between clocks of hosts (100ms)\n"
     "  --no-moves       each move of a claim is a violation\n"
     "  --directory DIR  the journal files in DIR\n"
     "  -m               all journals that this machine has collected\n"
     "  --unit UNIT      berthd's unit (berthd.service)\n"},
    {"doctor", verb_doctor, 0, 0, "check this host and what it sees of the cluster",
     "berth doctor [--json | --nagios] [--only CHECK,...] [--skip CHECK,...]\n"
     "             [-c CONFIG]\n"
     "berth doctor --list\n"
     "\n"
     "Checks berthd, its config, Redis, hosts, pools, runs and files. Prints what it\n"
     "finds, worst first, and what to do. Changes nothing. Works without berthd.\n"
     "Exit status: 0 nothing or notes, 1 a warning, 2 critical, 3 a check was not\n"
     "possible (some need root) and nothing worse was found.\n"
     "\n"
     "  --nagios      one line for Nagios, then a line for each finding\n"
     "  --only CHECK  these checks alone: redis-away,heartbeat\n"
     "  --skip CHECK  not these checks\n"
     "  --list        print the names of all checks, and what they find\n"
     "  -c CONFIG     berthd's config (/etc/berth/berth.conf)\n"},
    {"import-crontab", verb_import_crontab, 1, WORDS_ANY, "print crontabs as a config",
     "berth import-crontab FILE... [--system | --user USER] [--prefix NAME]\n"
     "\n"
     "Prints a config with a job for each line of the crontabs. If a line cannot be\n"
     "converted, a comment gives the reason, and the exit status is 65. FILE may be -\n"
     "for standard input: `crontab -l | berth import-crontab -`. Needs no berthd.\n"
     "\n"
     "  --system       lines name their user: the default for /etc/crontab and cron.d\n"
     "  --user USER    all lines belong to USER. Default: the name of a file in a\n"
     "                 folder crontabs, the caller for -\n"
     "  --prefix NAME  beginning of the names of the jobs (default: the file's name)\n"},
    {"check-config", verb_check_config, 0, 1, "check a config file",
     "berth check-config [FILE | -c FILE]\n"
     "\n"
     "Reads FILE (default: /etc/berth/berth.conf) and FILE.d/*.conf. Prints all\n"
     "errors (exit status 78), or the number of pools and jobs (0). Needs no berthd.\n"},
    {"version", verb_version, 0, 0, "print the versions of berth and berthd",
     "berth version\n"
     "\n"
     "Prints the version of this program, and of berthd if it can be reached.\n"},
    {"help", verb_help, 0, 1, "print this, or the help of a verb", "berth help [VERB]\n"},
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
          "`berth help VERB` explains a verb.\n"
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
        return options_refuse("unknown verb \"%.100s\"; did you mean \"%s\"? `berth help` lists them all",
                              name, near);
    return options_refuse("unknown verb \"%.100s\"; `berth help` lists them all", name);
}

static int verb_help(int argc, char **argv) {
    const struct verb *verb;
    int words, status;

    words = options_parse(argc, argv, NULL, 0, &status);
    if (words < 0)
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

/* Reads the options before the verb. Returns the index of the verb; 0: there is nothing more to do than to
 * exit with *ret_status. */
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
                              ? options_refuse("--socket needs a path")
                              : options_refuse(
                                    "unknown option \"%.100s\" before the verb; `berth help` lists them",
                                    argv[i]);
            return 0;
        }
    }
    if (i < argc)
        return i;
    print_help(stderr);
    *ret_status = EXIT_USAGE;
    return 0;
}

int cli_main(int argc, char **argv) {
    const struct verb *verb;
    int status = 0, i = find_verb(argc, argv, &status);

    if (i == 0)
        return standard_output_end("berth", status);
    verb = verb_find(argv[i]);
    return standard_output_end("berth", verb ? verb->fn(argc - i, argv + i) : unknown_verb(argv[i]));
}

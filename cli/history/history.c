/* SPDX-License-Identifier: MIT */
/* berth history: the runs of the journal that match, as a list or as figures. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/name.h"
#include "cli/choice.h"
#include "cli/client.h"
#include "cli/history/show.h"
#include "cli/output.h"
#include "cli/sources.h"
#include "cli/verbs.h"

#define FIGURES_SPAN (24 * 3600 * USEC_PER_SEC) /* without --since */

struct request {
    struct choice runs;
    const char *pool;    /* NULL: all */
    usec_t since, until; /* 0, USEC_INFINITY: all */
    bool stats, use;
    enum stats_by by;
    char **pools; /* --use: these; n_pools 0: all */
    size_t n_pools, n_cells;
    usec_t step; /* 0: a 24th of the time */
    struct shown shown;
};

#define CELLS 24
#define CELLS_MAX 200

/* Returns 0, or an exit status whose reason was printed. */
static int check_choice(struct choice *c, const struct past *pasts, size_t n) {
    const char *missing;

    for (size_t i = 0; i < n; i++)
        choice_see(c, pasts[i].run, pasts[i].name);
    missing = choice_missing(c);
    if (!missing)
        return 0;
    fprintf(stderr, "berth history: the journal has no job or run %s\n", missing);
    return EXIT_UNKNOWN_NAME;
}

static bool is_chosen(const struct past *p, const struct request *r) {
    return choice_has(&r->runs, p->run, p->name) && (!r->pool || past_uses(p, r->pool));
}

/* Returns whether the run existed at some time between since and until. */
static bool existed(const struct past *p, const struct request *r) {
    return p->first < r->until && (p->ended == 0 || p->ended >= r->since);
}

static int show_stats(const struct entries *e, const struct past *pasts, size_t n, const struct request *r) {
    _cleanup_(history_hosts_done) struct history_hosts hosts = {};
    _cleanup_(stats_done) struct stats stats = {};
    int k = history_hosts_make(e, &hosts);

    k = k < 0 ? k : stats_make(pasts, n, &hosts, r->by, r->since, r->until, &stats);
    return k < 0 ? output_error(k) : history_show_stats(&stats, &hosts, &r->shown);
}

/* Keeps the requested pools. Returns the first one that is missing, or NULL. */
static const char *choose_pools(struct uses *u, const struct request *r) {
    const char *missing = NULL;
    size_t kept = 0;

    for (size_t i = 0; i < r->n_pools && !missing; i++) {
        missing = r->pools[i];
        for (size_t k = 0; k < u->n; k++)
            if (use_pool_is(&u->pools[k], r->pools[i]))
                missing = NULL;
    }
    for (size_t k = 0; k < u->n; k++) {
        bool is_chosen_pool = r->n_pools == 0;

        for (size_t i = 0; i < r->n_pools; i++)
            is_chosen_pool |= use_pool_is(&u->pools[k], r->pools[i]);
        if (is_chosen_pool)
            u->pools[kept++] = u->pools[k];
        else
            free(u->pools[k].cells);
    }
    u->n = kept;
    return missing;
}

static int show_use(const struct entries *e, const struct past *pasts, size_t n, const struct request *r) {
    _cleanup_(history_hosts_done) struct history_hosts hosts = {};
    _cleanup_(uses_done) struct uses uses = {};
    const char *missing;
    int k = history_hosts_make(e, &hosts);

    k = k < 0 ? k : uses_make(&uses, e, pasts, n, &hosts, r->since, r->until, r->n_cells);
    if (k < 0)
        return output_error(k);
    missing = choose_pools(&uses, r);
    if (missing) {
        fprintf(stderr, "berth history: the journal has no pool %s\n", missing);
        return EXIT_UNKNOWN_NAME;
    }
    return history_show_use(&uses, &hosts, &r->shown);
}

static int show(const struct entries *e, struct request *r) {
    _cleanup_free_ struct past *pasts = NULL;
    size_t n, n_chosen = 0;
    int status, k = pasts_make(e, &pasts, &n);

    if (k < 0)
        return output_error(k);
    if (r->use)
        return show_use(e, pasts, n, r);
    status = check_choice(&r->runs, pasts, n);
    if (status != 0)
        return status;
    for (size_t i = 0; i < n; i++)
        if (is_chosen(&pasts[i], r) && (r->stats || existed(&pasts[i], r)))
            pasts[n_chosen++] = pasts[i];
    return r->stats ? show_stats(e, pasts, n_chosen, r) : history_show_runs(pasts, n_chosen, &r->shown);
}

/* Sets the span of time of the figures, which --use cuts into cells. Returns 0, or an exit status whose
 * reason was printed. */
static int set_span(struct request *r) {
    usec_t n;

    if (r->stats && r->use)
        return options_wrong_usage("history", "--stats and --use exclude each other");
    if (r->use && r->pool)
        return options_wrong_usage("history", "--use takes names of pools instead of --pool");
    if (r->step > 0 && !r->use)
        return options_wrong_usage("history", "--step needs --use");
    if (!r->stats && !r->use)
        return 0;
    r->until = r->until == USEC_INFINITY ? clock_realtime() : r->until;
    r->since = r->since > 0 ? r->since : usec_sub(r->until, FIGURES_SPAN);
    if (r->since >= r->until)
        return options_wrong_usage("history", "--since must be before --until");
    n = r->step > 0 ? (r->until - r->since + r->step - 1) / r->step : CELLS;
    if (n > CELLS_MAX)
        return options_wrong_usage("history", "--step is too short: that makes more than %d cells",
                                   CELLS_MAX);
    if (r->step > 0 && n * r->step > r->until - r->since) /* whole cells; the last one ends now */
        r->since = usec_sub(r->until, n * r->step);
    r->n_cells = (size_t) n;
    return 0;
}

/* Returns 0, or an exit status whose reason was printed. */
static int parse_by(const char *by, struct request *r) {
    static const char *const names[] = {
        [STATS_BY_JOB] = "job", [STATS_BY_POOL] = "pool", [STATS_BY_HOST] = "host"};

    if (!by)
        return 0;
    if (!r->stats)
        return options_wrong_usage("history", "--by needs --stats");
    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (strcmp(by, names[i]) == 0) {
            r->by = (enum stats_by) i;
            return 0;
        }
    return options_wrong_usage("history", "--by %.64s: must be job, pool or host", by);
}

int verb_history(int argc, char **argv) {
    _cleanup_(entries_done) struct entries entries = {};
    struct request r = {.until = USEC_INFINITY};
    struct sources sources = {.may_lack = true};
    const char *since = NULL, *until = NULL, *by = NULL, *step = NULL;
    json_int_t step_ms = 0;
    const struct verb_option options[] = {
        OPTION_FLAG("--json", &r.shown.json), OPTION_FLAG("--utc", &r.shown.utc),
        OPTION_FLAG("--stats", &r.stats),     OPTION_VALUE("--by", &by),
        OPTION_FLAG("--use", &r.use),         OPTION_VALUE("--step", &step),
        OPTION_VALUE("--pool", &r.pool),      OPTION_VALUE("--since", &since),
        OPTION_VALUE("--until", &until),      SOURCES_OPTIONS(&sources)};
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    r.shown.merged = sources.merged;
    status = options_parse_when("history", "--since", since, &r.since);
    if (status == 0)
        status = options_parse_when("history", "--until", until, &r.until);
    if (status == 0)
        status = parse_by(by, &r);
    if (status == 0 && step)
        status = options_parse_msec("history", "--step", step, &step_ms);
    r.step = (usec_t) step_ms * USEC_PER_MSEC;
    if (status == 0)
        status = set_span(&r);
    for (int i = 1; i <= words && status == 0; i++)
        status = r.use ? options_check_pool("history", argv[i])
                       : options_check_job("history", "job or run", argv[i]);
    r.pools = argv + 1;
    r.n_pools = r.use ? (size_t) words : 0;
    if (status == 0 && r.pool)
        status = options_check_pool("history", r.pool);
    if (status == 0)
        status = sources_read("history", &sources, &entries);
    if (status == 0 && choice_new(&r.runs, argv + 1, (size_t) words) < 0)
        status = output_error(-ENOMEM);
    status = status != 0 ? status : show(&entries, &r);
    choice_done(&r.runs);
    return status;
}

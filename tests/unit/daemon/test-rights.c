/* SPDX-License-Identifier: MIT */

/* Who may do what: the decision for each kind of caller, the text of refusals, and the right of each
 * method. */

#include "daemon/rights.h"

#include <string.h>

#include "daemon/api/verbs.h"
#include "tests/harness/test.h"

enum { ALICE = 3001, BOB, CAROL };                      /* users: Alice is named by a pool, Bob by a job */
enum { RUNNERS = 4001, OPERATORS, STUDENTS, DBA };      /* groups */

/* Accounts of this test; the config's names stand for them. */
static const struct {
    const char *name;
    id_t id;
} known[] = {{"alice", ALICE}, {"bob", BOB}, {"berth", RUNNERS}, {"berth-admin", OPERATORS}, {"students", STUDENTS}, {"dba", DBA}};

static struct settings *settings;
static struct run *adhoc, *of_job, *of_removed; /* the first is Carol's; the others have her uid, which does not make a job's run hers */

static void know(struct account *a) {
    for (size_t i = 0; i < ELEMENTSOF(known); i++)
        if (strcmp(a->name, known[i].name) == 0) {
            a->id = known[i].id;
            a->is_known = true;
        }
}

static void know_all(struct accounts *accounts) {
    for (size_t i = 0; i < accounts->n; i++)
        know(&accounts->items[i]);
}

static struct run *make_run(enum run_kind kind, const char *name) {
    struct run_spec spec = {.kind = kind, .name = name, .pools = &(struct demands) {}};
    struct run *r = NULL;

    CU_ASSERT_FATAL(run_new(&r, &spec, settings) == 0);
    r->adhoc.uid = CAROL;
    return r;
}

static void up(void) {
    static const char text[] = "pool open { limit = 1 scope = host }\n"
                               "pool narrow { limit = 1 scope = host users = {\"alice\", \"@students\", \"@gone\"} }\n"
                               "pool closed { limit = 1 scope = host users = {\"gone\", \"@gone\"} }\n"
                               "job db { command = {\"/db\"} operators = {\"bob\", \"@dba\", \"gone\"} }\n"
                               "job plain { command = {\"/plain\"} }\n";
    struct settings_errors errors = {};

    CU_ASSERT_FATAL(settings_parse(&(struct settings_source) {"x", text, strlen(text)}, 1, "ant", &settings, &errors) == 0);
    know(&settings->run_group);
    know(&settings->operate_group);
    for (size_t i = 0; i < settings->n_pools; i++)
        know_all(&settings->pools[i].users);
    for (size_t i = 0; i < settings->n_jobs; i++)
        know_all(&settings->jobs[i].operators);
    adhoc = make_run(RUN_KIND_ADHOC, "label");
    of_job = make_run(RUN_KIND_JOB, "db");
    of_removed = make_run(RUN_KIND_JOB, "removed");
}

static void down(void) {
    adhoc = run_free(adhoc);
    of_job = run_free(of_job);
    of_removed = run_free(of_removed);
    settings = settings_free(settings);
}

/* --- decisions --- */

/* Returns a letter for each thing that the caller may do. */
static const char *decide(const struct caller *c) {
    static char text[16];
    enum right right = rights_get(settings, c);
    const struct {
        char letter;
        bool may;
    } all[] = {
        {'R', right >= RIGHT_RUN},
        {'O', right == RIGHT_OPERATE},
        {'o', rights_cover_pool(settings, c, settings_find_pool(settings, "open"))},
        {'n', rights_cover_pool(settings, c, settings_find_pool(settings, "narrow"))},
        {'c', rights_cover_pool(settings, c, settings_find_pool(settings, "closed"))},
        {'d', rights_cover_job(settings, c, settings_find_job(settings, "db"))},
        {'p', rights_cover_job(settings, c, settings_find_job(settings, "plain"))},
        {'u', rights_cover_job(settings, c, NULL)},
        {'a', rights_cover_run(settings, c, adhoc)},
        {'j', rights_cover_run(settings, c, of_job)},
        {'x', rights_cover_run(settings, c, of_removed)},
    };
    size_t n = 0;

    for (size_t i = 0; i < ELEMENTSOF(all); i++)
        if (all[i].may)
            text[n++] = all[i].letter;
    text[n] = '\0';
    return text;
}

static void test_decisions(void) {
    static gid_t runners[] = {STUDENTS + 100, RUNNERS}, operators[] = {OPERATORS}, students[] = {STUDENTS}, dba[] = {DBA};
    static gid_t running_students[] = {RUNNERS, STUDENTS}, running_dba[] = {RUNNERS, DBA}, all[] = {RUNNERS, OPERATORS, STUDENTS, DBA};
    static const struct {
        const char *who;
        struct caller c;
        const char *may;
    } table[] = {
        {"root", {{0, 5000, 1}, NULL, 0}, "ROoncdpuajx"},
        {"a stranger", {{5000, 5000, 1}, NULL, 0}, ""},
        {"a stranger in group 0", {{5000, 0, 1}, NULL, 0}, ""},
        {"the owner of an ad hoc run, without another right", {{CAROL, 5000, 1}, NULL, 0}, ""},
        {"a runner", {{5000, 5000, 1}, runners, 2}, "Ro"},
        {"a runner by the primary group", {{5000, RUNNERS, 1}, NULL, 0}, "Ro"},
        {"a user with the number of the group", {{RUNNERS, 5000, 1}, NULL, 0}, ""},
        {"a runner, of its own run", {{CAROL, 5000, 1}, runners, 2}, "Roa"},
        {"an operator", {{5000, 5000, 1}, operators, 1}, "ROoncdpuajx"},
        {"an operator by the primary group", {{5000, OPERATORS, 1}, NULL, 0}, "ROoncdpuajx"},
        {"a member of all groups", {{5000, 5000, 1}, all, 4}, "ROoncdpuajx"},
        {"a pool's user", {{ALICE, 5000, 1}, runners, 2}, "Ron"},
        {"a pool's user without the right to run", {{ALICE, 5000, 1}, NULL, 0}, ""},
        {"a pool's user by group", {{5000, 5000, 1}, running_students, 2}, "Ron"},
        {"a pool's user by group, without the right to run", {{5000, 5000, 1}, students, 1}, ""},
        {"a group with the number of the user", {{5000, ALICE, 1}, runners, 2}, "Ro"},
        {"a job's operator", {{BOB, 5000, 1}, NULL, 0}, "dj"},
        {"a job's operator by group", {{5000, 5000, 1}, dba, 1}, "dj"},
        {"a job's operator who may run", {{5000, 5000, 1}, running_dba, 2}, "Rodj"},
        {"a group with the number of the job's operator", {{5000, BOB, 1}, NULL, 0}, ""},
    };

    for (size_t i = 0; i < ELEMENTSOF(table); i++) {
        char actual[128], expected[128];

        snprintf(actual, sizeof(actual), "%s: %s", table[i].who, decide(&table[i].c));
        snprintf(expected, sizeof(expected), "%s: %s", table[i].who, table[i].may);
        TEST_STRING(actual, expected);
    }
}

/* The user who runs berthd has all rights. */
static void test_own_user(void) {
    struct caller own = {{geteuid(), 5000, 1}, NULL, 0};

    TEST_STRING(decide(&own), "ROoncdpuajx");
}

/* An account that the machine does not have gives nobody a right, whatever its id field contains. */
static void test_unknown_accounts(void) {
    static gid_t zero[] = {0};
    struct caller c = {{5000, 5000, 1}, zero, 1};

    settings->run_group.is_known = settings->operate_group.is_known = false;
    settings->run_group.id = settings->operate_group.id = 0;
    TEST_STRING(decide(&c), "");
}

/* --- words --- */

static const char *holders(enum right right, const struct accounts *besides) {
    static char text[RIGHTS_TEXT_SIZE];

    return rights_format_holders(settings, right, besides, text);
}

static void test_words(void) {
    char alone[64];

    TEST_STRING(holders(RIGHT_OPERATE, NULL), "root and members of group berth-admin have it");
    TEST_STRING(holders(RIGHT_RUN, NULL), "root, members of group berth-admin and members of group berth have it");
    TEST_STRING(holders(RIGHT_RUN, &settings_find_pool(settings, "narrow")->users),
                "root, members of group berth-admin, user alice and members of group students have it");
    TEST_STRING(holders(RIGHT_RUN, &settings_find_pool(settings, "closed")->users), "root and members of group berth-admin have it");
    TEST_STRING(holders(RIGHT_OPERATE, &settings_find_job(settings, "db")->operators),
                "root, members of group berth-admin, user bob and members of group dba have it");
    settings->operate_group.is_known = false;
    snprintf(alone, sizeof(alone), "root and uid %u have it", (unsigned) geteuid());
    TEST_STRING(holders(RIGHT_OPERATE, NULL), geteuid() == 0 ? "root has it" : alone);
}

/* The sentence is complete, however many accounts have the right. */
static void test_many_words(void) {
    char name[65];
    struct account many[20];
    const struct accounts besides = {many, ELEMENTSOF(many)};
    const char *text;

    memset(name, 'x', 64);
    name[64] = '\0';
    for (size_t i = 0; i < ELEMENTSOF(many); i++)
        many[i] = (struct account) {.name = name, .is_group = true, .is_known = true};
    text = holders(RIGHT_OPERATE, &besides);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " and 12 more have it"));
    TEST_INT(strlen(strstr(text, " have it")), strlen(" have it"));
}

/* --- the methods --- */

/* Reads the right from the comment line before "method NAME(" in the text of the interface. */
static void get_marked(const char *name, char ret[static 32]) {
    char line[96];
    const char *at, *mark;

    snprintf(line, sizeof(line), "\nmethod %s(", name);
    at = strstr(verbs_service.description, line);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    for (mark = at; mark > verbs_service.description && mark[-1] != '\n';)
        mark--;
    ret[0] = '\0';
    (void) sscanf(mark, "# right: %31[a-z ]", ret);
}

static void test_methods(void) {
    size_t n_rows = 0, n_methods = 0;

    for (const struct control_method *m = verbs_service.methods; m->name; m++, n_rows++) {
        char marked[32];

        CU_ASSERT_FATAL(strncmp(m->name, "io.berth.", 9) == 0);
        get_marked(m->name + 9, marked);
        TEST_STRING(marked, m->right == RIGHT_BY_TARGET ? "by target" : right_name(m->right));
    }
    for (const char *at = verbs_service.description; (at = strstr(at, "\nmethod ")); at++)
        n_methods++;
    TEST_INT(n_rows, n_methods);
}

/* The methods whose right depends on their target. A new one also needs rows in the matrix of
 * tests/integration/service/test-rights-verbs.c. */
static void test_by_target(void) {
    char all[256] = "";

    for (const struct control_method *m = verbs_service.methods; m->name; m++)
        if (m->right == RIGHT_BY_TARGET)
            snprintf(all + strlen(all), sizeof(all) - strlen(all), " %s", m->name + 9);
    TEST_STRING(all, " Start Stop Hold Started Stuck Ended");
}

static CU_TestInfo tests[] = {
    {"decisions", test_decisions},
    {"own user", test_own_user},
    {"unknown accounts", test_unknown_accounts},
    {"words", test_words},
    {"many words", test_many_words},
    {"methods", test_methods},
    {"by target", test_by_target},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "rights", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});

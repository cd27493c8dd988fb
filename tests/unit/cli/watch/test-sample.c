/* SPDX-License-Identifier: MIT */

/* What `berth watch --cluster` sees by comparing two pictures. */

#include "cli/watch/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/format.h"
#include "cli/watch/event-line.h"
#include "tests/harness/test.h"

#define AT "1f2e3d4c:17"

static json_t *last; /* sample */

/* Parses JSON with ' for ". */
static json_t *parse(const char *text) {
    _cleanup_free_ char *quoted = strdup(text);
    json_t *json;

    for (char *c = quoted; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json = json_loads(quoted, 0, NULL);
    CU_ASSERT_FATAL(json != NULL);
    return json;
}

/* Returns a pool of a picture, until the next call but one. Claims: "'claim': 'c1', 'host': 'bee', ..." of
 * one, or "". */
static const char *pool(const char *name, bool is_complete, const char *holders, const char *queue) {
    static char texts[2][2048];
    static unsigned n;

    n++;
    (void) snprintf(texts[n % 2], sizeof(texts[0]),
                    "{'name': '%s', 'scope': 'cluster', 'pattern': null, 'limit': 4, 'complete': %s, "
                    "'holders': [%s], 'queue': [%s]}",
                    name, is_complete ? "true" : "false", holders, queue);
    return texts[n % 2];
}

#define CLAIM(id, host, name, permits)                                                                      \
    "{'claim': '" id "', 'host': '" host "', 'name': '" name "', 'permits': " #permits "}"
#define BACKUP(permits) CLAIM("c1", "bee", "backup", permits)
#define IMPORT CLAIM("c2", "ant", "import", 1)

/* Compares pools "{...},{...}" and hosts "{'host': 'ant'}" with the last ones. The lines must be these:
 * "event message pools;". */
static void sees_with(const char *pools, const char *hosts, const char *expected) {
    char text[4096], found[1024] = "";
    json_t *picture, *sample, *lines, *line;
    size_t i;

    (void) snprintf(text, sizeof(text), "{'pools': [%s], 'hosts': [%s]}", pools, hosts);
    picture = parse(text);
    sample = sample_new(picture);
    lines = sample_compare(last, sample, AT, 1763633527204518);
    json_array_foreach (lines, i, line) {
        size_t n = strlen(found);
        char buffer[FORMAT_SIZE];

        (void) snprintf(found + n, sizeof(found) - n, "%s %s %s;", format_get_text(line, "event"),
                        format_get_text(line, "message"), format_pools(line, "pools", buffer));
        CU_ASSERT(json_is_true(json_object_get(line, "sampled")));
        TEST_STRING(format_get_text(line, "at"), AT);
    }
    TEST_STRING(found, expected);
    json_decref(lines);
    json_decref(picture);
    json_decref(last);
    last = sample;
}

static void sees(const char *pools, const char *expected) {
    sees_with(pools, "", expected);
}

static void begin(const char *pools) {
    json_decref(last);
    last = NULL;
    sees(pools, "");
}

static void sees_db(const char *holders, const char *queue, const char *expected) {
    sees(pool("db", true, holders, queue), expected);
}

/* --- claims --- */

static void test_claim(void) {
    begin(pool("db", true, "", IMPORT));
    sees_db("", IMPORT "," BACKUP(2), "seen-waiting bee:backup waits for permits db:2;");
    sees_db("", IMPORT "," BACKUP(2), "");
    sees_db(BACKUP(2), IMPORT, "seen-held bee:backup holds permits db:2;");
    sees_db(BACKUP(2), IMPORT, "");
    sees_db("", IMPORT, "seen-freed bee:backup no longer holds its permits db:2;");
    sees_db("", IMPORT, "");
}

/* A claim that was granted while berthd read the pool is in neither list. */
static void test_missed(void) {
    begin(pool("db", true, "", BACKUP(2)));
    sees_db("", "", "");
    sees_db(BACKUP(2), "", "seen-held bee:backup holds permits db:2;");
    sees_db("", BACKUP(2),
            "seen-freed bee:backup no longer holds its permits db:2;seen-waiting bee:backup waits for permits "
            "db:2;");
    sees_db("", "", "");
    sees_db("", BACKUP(2), "");
    sees_db("", "", "");
    sees_db("", "", "seen-gone bee:backup no longer waits db:2;");
    sees_db("", "", "");
}

/* Several pools of one claim are one line, also if it was granted between the reading of two pools. */
static void test_two_pools(void) {
    char both[4200];

    begin("");
    (void) snprintf(both, sizeof(both), "%s,%s", pool("db", true, "", ""), pool("net", true, "", ""));
    begin(both);
    (void) snprintf(both, sizeof(both), "%s,%s", pool("db", true, "", BACKUP(2)),
                    pool("net", true, "", BACKUP(1)));
    sees(both, "seen-waiting bee:backup waits for permits db:2 net:1;");
    (void) snprintf(both, sizeof(both), "%s,%s", pool("db", true, "", ""), pool("net", true, BACKUP(1), ""));
    sees(both, "seen-held bee:backup holds permits net:1 db:2;");
    (void) snprintf(both, sizeof(both), "%s,%s", pool("db", true, BACKUP(2), ""),
                    pool("net", true, BACKUP(1), ""));
    sees(both, "");
    (void) snprintf(both, sizeof(both), "%s,%s", pool("db", true, BACKUP(2), ""), pool("net", true, "", ""));
    sees(both, "");
    (void) snprintf(both, sizeof(both), "%s,%s", pool("db", true, "", ""), pool("net", true, "", ""));
    sees(both, "seen-freed bee:backup no longer holds its permits db:2 net:1;");
}

/* Where not all claims are listed, one that is not listed may be there. */
static void test_cut(void) {
    begin(pool("db", true, BACKUP(2), ""));
    sees(pool("db", false, "", ""), "gap db: not all claims are listed; some changes are not seen db:0;");
    sees(pool("db", false, BACKUP(2), ""), "");
    sees(pool("db", false, "", IMPORT), "");
    sees(pool("db", true, BACKUP(2), IMPORT), "");
    sees_db("", IMPORT, "seen-freed bee:backup no longer holds its permits db:2;");
    json_decref(last);
    last = NULL;
    sees(pool("db", false, "", ""), "gap db: not all claims are listed; some changes are not seen db:0;");
}

#define KEY                                                                                                 \
    "{'name': 'tenant/a', 'scope': 'cluster', 'pattern': 'tenant/*', 'limit': %d, 'complete': true, "       \
    "'holders': [%s], 'queue': []}"

/* A key without claims is not in the picture. */
static void test_key(void) {
    char keyed[4200];

    begin(pool("tenant/*", true, "", ""));
    (void) snprintf(keyed, sizeof(keyed), "%s," KEY, pool("tenant/*", true, "", ""), 4, BACKUP(1));
    sees(keyed, "seen-held bee:backup holds permits tenant/a:1;");
    (void) snprintf(keyed, sizeof(keyed), "%s," KEY, pool("tenant/*", true, "", ""), 3, BACKUP(1));
    sees(keyed, "seen-limit tenant/a: the limit is 3, was 4 tenant/a:0;");
    sees(pool("tenant/*", true, "", ""), "seen-freed bee:backup no longer holds its permits tenant/a:1;");
    sees(keyed, "seen-held bee:backup holds permits tenant/a:1;");
    sees(pool("tenant/*", false, "", ""),
         "gap tenant/*: not all claims are listed; some changes are not seen tenant/*:0;");
    begin(pool("db", true, BACKUP(2), ""));
    sees("", ""); /* no host defines the pool any more, as far as this picture shows */
}

/* --- pools and hosts --- */

static void test_limit(void) {
    begin("{'name': 'db', 'scope': 'cluster', 'limit': 4, 'complete': true}, {'name': 'cpu', 'scope': "
          "'host', 'limit': 4}");
    sees("{'name': 'db', 'scope': 'cluster', 'limit': 0, 'complete': true}, {'name': 'cpu', 'scope': "
         "'host', 'limit': 5}",
         "seen-limit db: the limit is 0, was 4 db:0;");
    sees("{'name': 'db', 'scope': 'cluster', 'limit': 0, 'complete': true}, {'name': 'net', 'scope': "
         "'cluster', 'limit': 5, 'complete': true}",
         "");
}

static void test_hosts(void) {
    begin("");
    sees_with("", "{'host': 'ant'}", "seen-host ant has joined ;");
    sees_with("", "{'host': 'ant'}, {'host': 'ant'}, {'host': 'bee'}", "seen-host bee has joined ;");
    sees_with("", "{'host': 'ant'}", "seen-host-gone bee has gone ;");
}

static bool is_whole(const char *text) {
    json_t *picture = parse(text);
    bool is = sample_is_whole(picture);

    json_decref(picture);
    return is;
}

static void test_whole(void) {
    CU_ASSERT(is_whole("{'stale': false, 'redis': {'grace_ms': 0}}"));
    CU_ASSERT(!is_whole("{'stale': true, 'redis': {'grace_ms': 0}}"));
    CU_ASSERT(!is_whole("{'stale': false, 'redis': {'grace_ms': 3000}}"));
}

/* --- lines --- */

static void test_line(void) {
    _cleanup_free_ char *json = NULL, *text = NULL;
    json_t *
        picture = parse(
           "{'pools': [{'name': 'db', 'scope': 'cluster', 'limit': 4, 'complete': true, 'holders': [" BACKUP(
               2) "]}]}"),
       *empty = parse("{'pools': [{'name': 'db', 'scope': 'cluster', 'limit': 4, 'complete': true}]}"),
       *before = sample_new(empty), *now = sample_new(picture),
       *lines = sample_compare(before, now, AT, 1763633527204518);
    size_t size;
    FILE *f = open_memstream(&text, &size);

    TEST_INT(json_array_size(lines), 1);
    json = json_dumps(json_array_get(lines, 0), 0);
    TEST_STRING(json, "{\"schema\": 1, \"time\": \"2025-11-20T10:12:07.204518Z\", \"at\": \"" AT
                      "\", \"event\": \"seen-held\", "
                      "\"message\": \"bee:backup holds permits\", \"sampled\": true, \"host\": \"bee\", "
                      "\"job\": \"backup\", "
                      "\"run\": \"c1\", \"pools\": {\"db\": 2}}");
    event_line_print(f, json_array_get(lines, 0), SIZE_MAX);
    (void) fclose(f);
    TEST_STRING(text, "10:12:07.204 seen-held     bee:backup c1 db:2\n");
    json_decref(lines);
    json_decref(now);
    json_decref(before);
    json_decref(empty);
    json_decref(picture);
}

int main(int argc, char **argv) {
    static CU_TestInfo tests[] = {
        {"a claim waits, holds, ends", test_claim},
        {"a claim that one picture misses", test_missed},
        {"a claim of two pools", test_two_pools},
        {"not all claims are listed", test_cut},
        {"keys of a pattern", test_key},
        {"limits", test_limit},
        {"hosts", test_hosts},
        {"pictures that are not compared", test_whole},
        {"a line", test_line},
        CU_TEST_INFO_NULL,
    };
    static CU_SuiteInfo suites[] = {{.pName = "sample", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r;

    setenv("TZ", "UTC", 1);
    r = test_main(argc, argv, suites);
    json_decref(last);
    return r;
}

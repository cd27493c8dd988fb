/* SPDX-License-Identifier: MIT */
/* One call of a verb to berthd. The rest of cli/client.h is tested through `berth run`. */
#include "cli/client.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

#define LARGE (3 * 1024 * 1024)

/* In the child, in place of `berth run`: asks, prints the answer, exits with the result of client_call(). */
static void ask(struct fake *f) {
    json_t *reply = NULL;
    int status = client_call("io.berth.Stop", json_pack("{s:s}", "target", "nightly"), &reply);

    (void) f;
    if (status == 0) {
        const char *text = json_string_value(json_object_get(reply, "text"));

        if (text && strlen(text) > 1000)
            printf("%zu bytes\n", strlen(text));
        else
            puts(text ? text : "no text");
        (void) fflush(stdout);
    }
    _exit(status);
}

static const char *about_socket(const struct fake *f, const char *before, const char *after) {
    static char text[512];

    snprintf(text, sizeof(text), "%s%s%s", before, f->socket, after);
    return text;
}

static void begin(struct fake *f) {
    json_t *params;

    fake_init(f);
    fake_in_child = ask;
    fake_run(f, "", NULL);
    fake_accept(f);
    params = fake_expect(f, "io.berth.Stop");
    TEST_STRING(json_string_value(json_object_get(params, "target")), "nightly");
    json_decref(params);
}

static void end(struct fake *f, int status, const char *error) {
    TEST_INT(fake_await_exit(f), status);
    TEST_STRING(fake_errors(f), error);
    fake_done(f);
}

static void test_answer(void) {
    struct fake f;

    begin(&f);
    fake_reply(&f, "{'parameters': {'text': 'done'}}");
    fake_await_output(&f, "done\n");
    end(&f, 0, "");
}

static void test_no_parameters(void) {
    struct fake f;

    begin(&f);
    fake_reply(&f, "{}");
    fake_await_output(&f, "no text\n");
    end(&f, 0, "");
}

static void test_large_answer(void) {
    _cleanup_free_ char *text = malloc(LARGE + 64);
    struct fake f;
    int n;

    begin(&f);
    n = snprintf(text, 64, "{'parameters': {'text': '");
    memset(text + n, 'x', LARGE);
    snprintf(text + n + LARGE, 32, "end'}}");
    fake_reply(&f, text);
    fake_await_output(&f, "3145731 bytes\n");
    end(&f, 0, "");
}

static void test_error(void) {
    struct fake f;

    begin(&f);
    fake_reply(&f, "{'error': 'io.berth.NoSuchRun', 'parameters': {'name': 'nightly'}}");
    end(&f, 65, "berth: no such run: nightly\n");
    begin(&f);
    fake_reply(&f, "{'error': 'io.berth.Skipped', 'parameters': {'job': 'nightly', 'run': null}}");
    end(&f, 75, "berth: skipped: a run of nightly is not over\n");
}

static void test_closed_without_answer(void) {
    struct fake f;

    begin(&f);
    fake_hang_up(&f);
    end(&f, 69, about_socket(&f, "berth: berthd closed the connection on ", "\n"));
}

static void refuses(const char *reply) {
    struct fake f;

    begin(&f);
    fake_reply(&f, reply);
    end(&f, 70, about_socket(&f, "berth: ", ": the listening process does not speak Varlink\n"));
}

static void test_no_varlink(void) {
    refuses("");
    refuses("[1, 2]");
    refuses("{'parameters': []}");
    refuses("{'error': 7}");
    refuses("{'continues': 'yes'}");
    refuses("{'parameters': {}, 'parameters': {}}");
}

static CU_TestInfo tests[] = {
    {"answer", test_answer},
    {"no parameters", test_no_parameters},
    {"large answer", test_large_answer},
    {"error", test_error},
    {"closed without answer", test_closed_without_answer},
    {"no varlink", test_no_varlink},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "client", .pTests = tests});

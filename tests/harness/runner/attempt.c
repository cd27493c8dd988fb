/* SPDX-License-Identifier: MIT */
#include "tests/harness/runner/attempt.h"

#include <string.h>

#include "tests/harness/test.h"

static void on_second(struct redis_connection *c, void *userdata) {
    struct attempt *a = userdata;

    a->is_resumed = redis_connection_tls(c) && tls_is_resumed(redis_connection_tls(c));
    a->is_over = true;
}

static void on_lost(_unused_ struct redis_connection *c, enum redis_error error, const char *text,
                    void *userdata) {
    struct attempt *a = userdata;

    a->n_down++;
    a->error = error;
    (void) snprintf(a->text, sizeof(a->text), "%s", text);
    a->is_over = true;
}

static void on_up(struct redis_connection *c, void *userdata) {
    struct attempt *a = userdata;
    const struct tls_session *tls = redis_connection_tls(c);

    a->n_up++;
    a->connection = c;
    (void) snprintf(a->version, sizeof(a->version), "%s", tls ? tls_version(tls) : "");
    if (redis_dial_again(&a->dial, &a->second) < 0)
        on_lost(NULL, REDIS_ERROR_RETRY, "no memory", a);
}

static void on_down(enum redis_error error, const char *text, void *userdata) {
    on_lost(NULL, error, text, userdata);
}

static void on_warning(const char *text, void *userdata) {
    struct attempt *a = userdata;

    (void) snprintf(a->warning, sizeof(a->warning), "%s", text);
}

void attempt_begin(struct attempt *a, const struct tls_place *place, const char *host, unsigned port) {
    *a = (struct attempt){
        .settings = {.host = (char *) host,
                     .port = (uint16_t) port,
                     .timeout_usec = 5 * USEC_PER_SEC,
                     .connect_timeout_usec = 5 * USEC_PER_SEC,
                     .tls = {.is_used = true, .ca = strdup(tls_place_path(place, "ca.crt"))}}};
    a->options = (struct redis_connection_options){.settings = &a->settings,
                                                   .client_name = "test",
                                                   .on_up = on_second,
                                                   .on_down = on_lost,
                                                   .userdata = a};
    CU_ASSERT_FATAL(sd_event_new(&a->event) >= 0);
    TEST_INT(redis_dial_init(&a->dial, a->event, &a->options,
                             &(struct redis_dial_handler){on_up, on_down, on_warning, a}),
             0);
}

void attempt_run(struct attempt *a) {
    usec_t end = clock_boottime() + 10 * USEC_PER_SEC;

    a->n_up = a->n_down = 0;
    a->is_over = false;
    redis_dial_start(&a->dial);
    while (!a->is_over && clock_boottime() < end)
        (void) sd_event_run(a->event, 100 * USEC_PER_MSEC);
    a->connection = redis_connection_free(a->connection);
    a->second = redis_connection_free(a->second);
}

void attempt_end(struct attempt *a) {
    redis_dial_done(&a->dial);
    free(a->settings.tls.ca);
    sd_event_unref(a->event);
}

void attempt_expect_up(struct attempt *a, const char *what) {
    attempt_run(a);
    if (a->n_up != 1 || a->n_down != 0)
        TEST_STRING(a->text, what);
    TEST_INT(a->n_up, 1);
    attempt_end(a);
}

void attempt_expect_down(struct attempt *a, enum redis_error error, const char *text) {
    attempt_run(a);
    TEST_INT(a->n_up, 0);
    TEST_INT(a->n_down, 1);
    TEST_INT(a->error, error);
    if (!strstr(a->text, text))
        TEST_STRING(a->text, text);
    attempt_end(a);
}

/* SPDX-License-Identifier: MIT */

/* Parameters of a call. A parameter that is unknown, missing or of another type is an error that names
 * it. */

#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "daemon/api/verbs-internal.h"

static bool is_strings(const json_t *value) {
    json_t *item;
    size_t i;

    if (!json_is_array(value))
        return false;
    json_array_foreach(value, i, item)
        if (!json_is_string(item))
            return false;
    return true;
}

static bool is_texts(json_t *value) {
    const char *key;
    json_t *item;

    if (!json_is_object(value))
        return false;
    json_object_foreach (value, key, item)
        if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item))
            return false;
    return true;
}

static bool read_value(const struct param *p, json_t *value) {
    switch (p->type) {
    case PARAM_STRING:
        if (!json_is_string(value))
            return false;
        *(const char **) p->ret = json_string_value(value);
        return true;
    case PARAM_INT:
        if (!json_is_integer(value) || json_integer_value(value) < p->min || json_integer_value(value) > p->max)
            return false;
        *(json_int_t *) p->ret = json_integer_value(value);
        return true;
    case PARAM_BOOL:
        if (!json_is_boolean(value))
            return false;
        *(bool *) p->ret = json_is_true(value);
        return true;
    case PARAM_TEXTS:
        if (!is_texts(value))
            return false;
        *(json_t **) p->ret = value;
        return true;
    case PARAM_STRINGS:
        if (!is_strings(value))
            return false;
        *(json_t **) p->ret = value;
        return true;
    }
    return false;
}

/* 1 to 64 printable characters. */
static bool is_person(const json_t *value) {
    const char *text = json_string_value(value);

    return text && *text && json_string_length(value) == strlen(text) && strlen(text) <= ON_BEHALF_MAX && !text_has_control(text, false);
}

static bool is_known(const char *key, const struct param *table, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].name, key) == 0)
            return true;
    return false;
}

static bool has_too_many(const struct param *p, const json_t *value) {
    return p->type == PARAM_STRINGS && json_array_size(value) > STRINGS_MAX;
}

static int invalid(struct control_call *call, const char *name) {
    int r = control_call_error(call, "org.varlink.service.InvalidParameter", json_pack("{s:s}", "parameter", name));

    return r < 0 ? r : VERBS_ANSWERED;
}

int params_read(struct control_call *call, json_t *params, const struct param *table, size_t n) {
    const char *key;
    json_t *value;

    json_object_foreach (params, key, value) {
        if (strcmp(key, "on_behalf") == 0 && control_call_method(call)->changes) {
            if (!json_is_null(value) && !is_person(value))
                return invalid(call, key);
        } else if (!is_known(key, table, n)) {
            return invalid(call, key);
        }
    }
    for (size_t i = 0; i < n; i++) {
        value = json_object_get(params, table[i].name);
        if (!value || json_is_null(value)) {
            if (table[i].required)
                return invalid(call, table[i].name);
        } else if (!read_value(&table[i], value)) {
            return invalid(call, table[i].name);
        } else if (has_too_many(&table[i], value)) {
            int r = verbs_bad_request(call, "%s: %zu in one call, %d are the most", table[i].name, json_array_size(value), STRINGS_MAX);

            return r < 0 ? r : VERBS_ANSWERED;
        }
    }
    return 0;
}

int verbs_error(struct control_call *call, const char *error, const char *format, ...) {
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return control_call_error(call, error, json_pack("{s:s}", "text", text));
}

static int refuse_name(struct control_call *call, const char *kind, const char *why, const char *rule) {
    (void) verbs_bad_request(call, "the %s's name %s%s", kind, why, rule);
    return VERBS_ANSWERED;
}

int params_check_name(struct control_call *call, const char *kind, const char *text) {
    return !text || name_is_valid(text) ? 0 : refuse_name(call, kind, name_explain(text), "");
}

int params_check_job(struct control_call *call, const char *kind, const char *text) {
    bool is_valid = !text || job_name_parse(text) != JOB_NAME_INVALID;

    return is_valid ? 0 : refuse_name(call, kind, job_name_explain(text), "; " NAME_RULE);
}

int params_check_pool(struct control_call *call, const char *text) {
    return pool_name_parse(text) != POOL_NAME_INVALID ? 0 : refuse_name(call, "pool", pool_name_explain(text), "");
}

int params_check_run(struct control_call *call, const char *text) {
    if (!text || id_is_valid(text))
        return 0;
    (void) verbs_bad_request(call, "the id of a run has 32 digits, as `berth pools POOL` shows them");
    return VERBS_ANSWERED;
}

int params_check_reason(struct control_call *call, const char *text) {
    if (!text)
        return 0;
    for (const unsigned char *c = (const unsigned char *) text; *c; c++)
        if (*c < ' ' || *c == 0x7f) {
            (void) verbs_bad_request(call, "the reason has a control character; write one line of text");
            return VERBS_ANSWERED;
        }
    if (strlen(text) > VERBS_TEXT_MAX) {
        (void) verbs_bad_request(call, "the reason is too long; at most %d bytes", VERBS_TEXT_MAX);
        return VERBS_ANSWERED;
    }
    return 0;
}

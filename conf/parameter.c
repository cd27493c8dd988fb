/* SPDX-License-Identifier: MIT */
#include "conf/parameter.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/regex-cost.h"

#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define NAME_SHOWN 80
#define VALUE_SHOWN 80
#define CHOICES_SHOWN 200

static int fail(char error[static PARAMETER_ERROR_SIZE], const char *format, ...) _printf_(2, 3);
static int fail(char error[static PARAMETER_ERROR_SIZE], const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(error, PARAMETER_ERROR_SIZE, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

/* ---- names ---- */

size_t parameter_name_length(const char *text) {
    return strcspn(text, "=");
}

static int shown(size_t n) {
    return (int) (n < NAME_SHOWN ? n : NAME_SHOWN);
}

bool parameter_is_same(const char *a, const char *b) {
    size_t n = parameter_name_length(a);

    return n == parameter_name_length(b) && strncmp(a, b, n) == 0;
}

/* Variables with which a caller could make most programs run other code. A star stands for any end of the
 * name. berth.conf(5) has the same list. */
static const char *const dangerous[] = {
    /* the dynamic linker and the C library */
    "LD_*", "GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH",
    /* shells, and the places where programs look for files */
    "PATH", "IFS", "ENV", "BASH_ENV", "BASHOPTS", "PS4", "SHELL", "SHELLOPTS", "ZDOTDIR", "HOME",
    "XDG_CONFIG_*", "CREDENTIALS_DIRECTORY",
    /* interpreters and libraries that load modules */
    "PYTHON*", "PERL*", "RUBY*", "GEM_*", "BUNDLE_*", "NODE_OPTIONS", "NODE_PATH", "NPM_CONFIG_*",
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "PHPRC", "PHP_INI_SCAN_DIR",
    "LUA_*", "ERL_*", "R_PROFILE*", "R_ENVIRON*", "R_LIBS*", "TCLLIBPATH", "DOTNET_STARTUP_HOOKS",
    "CORECLR_*", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES",
    /* programs that run another one */
    "EDITOR", "VISUAL", "PAGER", "BROWSER", "LESSOPEN", "LESSCLOSE", "SSH_ASKPASS", "SUDO_ASKPASS",
    "GIT_ASKPASS", "GIT_CONFIG*", "GIT_DIR", "GIT_EDITOR", "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF",
    "GIT_PAGER", "GIT_PROXY_COMMAND", "GIT_SSH*", "MAKEFILES", "MAKEFLAGS", "PSQLRC", "RSYNC_RSH",
    "TAR_OPTIONS",
};

static bool is_dangerous(const char *name, size_t n) {
    for (size_t i = 0; i < ELEMENTSOF(dangerous); i++) {
        size_t length = strcspn(dangerous[i], "*");
        bool has_star = dangerous[i][length] == '*';

        if ((has_star ? n >= length : n == length) && strncmp(dangerous[i], name, length) == 0)
            return true;
    }
    return false;
}

static int check_name(const char *text, char error[static PARAMETER_ERROR_SIZE]) {
    size_t n = parameter_name_length(text);

    if (n == 0 || strspn(text, NAME_LETTERS) != n || isdigit((unsigned char) text[0]))
        return fail(error, "is not the name of a parameter; use A-Z 0-9 _, not beginning with a digit");
    if (n > PARAMETER_NAME_MAX)
        return fail(error, "has a name that is longer than %d characters", PARAMETER_NAME_MAX);
    if (strncmp(text, "BERTH_", 6) == 0)
        return fail(error, "begins with BERTH_, which berth sets itself; choose another name");
    if (is_dangerous(text, n))
        return fail(error, "would let a caller run anything; choose another name");
    return 0;
}

/* ---- the option ---- */

static bool is_printable(const char *text) {
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

/* "a|b|c" */
static int check_choices(const char *choices, char error[static PARAMETER_ERROR_SIZE]) {
    size_t n;

    if (!is_printable(choices))
        return fail(error, "has a value that is not printable ASCII");
    for (;; choices += n + 1) {
        n = strcspn(choices, "|");
        if (n == 0)
            return fail(error, "has an empty value; write NAME=a|b|c, or NAME=~REGEX");
        if (n > PARAMETER_VALUE_MAX)
            return fail(error, "has a value that is longer than %d bytes", PARAMETER_VALUE_MAX);
        if (choices[n] == '\0')
            return 0;
    }
}

/* 0, -EINVAL or -ENOMEM. The expression is compiled for each check: checks are rare. */
static int compile(const char *regex, regex_t *ret, char error[static PARAMETER_ERROR_SIZE]) {
    int answer = regcomp(ret, regex, REG_EXTENDED);
    char why[128];

    if (answer == 0)
        return 0;
    if (answer == REG_ESPACE)
        return -ENOMEM;
    (void) regerror(answer, NULL, why, sizeof(why));
    return fail(error, "is no regular expression: %s", why);
}

static int check_regex(const char *regex, char error[static PARAMETER_ERROR_SIZE]) {
    struct regex_cost cost;
    regex_t compiled;
    int r;

    if (*regex == '\0')
        return fail(error, "has no regular expression behind '~'");
    if (!is_printable(regex))
        return fail(error, "has a regular expression that is not printable ASCII");
    if (strlen(regex) > PARAMETER_REGEX_MAX)
        return fail(error, "has a regular expression of more than %d bytes", PARAMETER_REGEX_MAX);
    for (const char *p = strchr(regex, '\\'); p; p = strchr(p + 2, '\\')) {
        if (isdigit((unsigned char) p[1]))
            return fail(error, "refers back with \"\\%c\", which may take for ever to match; write it out",
                        p[1]);
        if (p[1] == '\0')
            break;
    }
    cost = regex_cost(regex);
    if (cost.length > REGEX_LENGTH_MAX)
        return fail(error, "is longer than %d characters with its repeats written out; write * or smaller numbers",
                    REGEX_LENGTH_MAX);
    if (cost.depth > REGEX_DEPTH_MAX)
        return fail(error, "has repeats within repeats within repeats, which may take for ever; use fewer");
    r = compile(regex, &compiled, error);
    if (r == 0)
        regfree(&compiled);
    return r;
}

int parameter_check(const char *text, char error[static PARAMETER_ERROR_SIZE]) {
    size_t n = parameter_name_length(text);
    int r = check_name(text, error);

    if (r < 0 || text[n] == '\0')
        return r;
    return text[n + 1] == '~' ? check_regex(text + n + 2, error) : check_choices(text + n + 1, error);
}

/* ---- values ---- */

int parameter_check_set(const char *set, char error[static PARAMETER_ERROR_SIZE]) {
    char why[PARAMETER_ERROR_SIZE];
    size_t n = parameter_name_length(set);

    if (set[n] != '=')
        return fail(error, "\"%.*s\" is not NAME=VALUE", shown(n), set);
    if (check_name(set, why) < 0)
        return fail(error, "%.*s %s", shown(n), set, why);
    if (strlen(set + n + 1) > PARAMETER_VALUE_MAX)
        return fail(error, "%.*s: the value is longer than %d bytes", shown(n), set, PARAMETER_VALUE_MAX);
    if (!is_printable(set + n + 1))
        return fail(error, "%.*s: the value is not printable ASCII", shown(n), set);
    return 0;
}

static bool is_choice(const char *choices, const char *value) {
    size_t length = strlen(value), n;

    for (;; choices += n + 1) {
        n = strcspn(choices, "|");
        if (n == length && strncmp(choices, value, n) == 0)
            return true;
        if (choices[n] == '\0')
            return false;
    }
}

/* Writes "users, orders", as far as there is room. */
static const char *list_choices(const char *choices, char buffer[static CHOICES_SHOWN]) {
    size_t size = 0;

    buffer[0] = '\0';
    for (const char *p = choices; *p && size < CHOICES_SHOWN;
         p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|'))
        size += (size_t) snprintf(buffer + size, CHOICES_SHOWN - size, "%s%.*s", p > choices ? ", " : "",
                                  (int) strcspn(p, "|"), p);
    return buffer;
}

/* regexec() finds the longest of the matches that begin first. That is the whole value if and only if the
 * expression matches all of it. */
static int check_match(const char *text, const char *value, char error[static PARAMETER_ERROR_SIZE]) {
    const char *regex = text + parameter_name_length(text) + 2;
    regmatch_t match = {.rm_so = -1};
    regex_t compiled;
    int r = compile(regex, &compiled, error), answer;

    if (r < 0)
        return r;
    answer = regexec(&compiled, value, 1, &match, 0);
    regfree(&compiled);
    if (answer == REG_ESPACE)
        return -ENOMEM;
    if (answer == 0 && match.rm_so == 0 && (size_t) match.rm_eo == strlen(value))
        return 0;
    return fail(error, "%.*s must match %s, all of it", (int) parameter_name_length(text), text, regex);
}

static int check_value(const char *text, const char *value, char error[static PARAMETER_ERROR_SIZE]) {
    size_t n = parameter_name_length(text);
    char choices[CHOICES_SHOWN];

    if (text[n] == '\0')
        return 0;
    if (text[n + 1] == '~')
        return check_match(text, value, error);
    if (is_choice(text + n + 1, value))
        return 0;
    return fail(error, "%.*s must be one of %s", (int) n, text, list_choices(text + n + 1, choices));
}

/* ---- of a job ---- */

static const char *find(char *const *list, size_t n, const char *name) {
    for (size_t i = 0; list && i < n && list[i]; i++)
        if (parameter_is_same(list[i], name))
            return list[i];
    return NULL;
}

static int fail_unknown(const struct parameters *parameters, const char *set,
                        char error[static PARAMETER_ERROR_SIZE]) {
    char written[PARAMETER_NAME_MAX + 1], names[PARAMETERS_MAX][PARAMETER_NAME_MAX + 1];
    const char *known[PARAMETERS_MAX], *near;
    size_t n = 0;

    snprintf(written, sizeof(written), "%.*s", (int) parameter_name_length(set), set);
    for (char *const *text = parameters->texts; text && *text && n < PARAMETERS_MAX; text++, n++) {
        snprintf(names[n], sizeof(names[n]), "%.*s", (int) parameter_name_length(*text), *text);
        known[n] = names[n];
    }
    near = nearest(written, known, n);
    return fail(error, "job \"%s\" has no parameter \"%s\"%s%s%s", parameters->job, written,
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int check_one(const struct parameters *parameters, char *const *sets, size_t i,
                     char error[static PARAMETER_ERROR_SIZE]) {
    const char *text;
    int r = parameter_check_set(sets[i], error);

    if (r < 0)
        return r;
    text = find(parameters->texts, PARAMETERS_MAX, sets[i]);
    if (!text)
        return fail_unknown(parameters, sets[i], error);
    if (find(sets, i, sets[i]))
        return fail(error, "%.*s is set twice; keep one", (int) parameter_name_length(sets[i]), sets[i]);
    return check_value(text, sets[i] + parameter_name_length(sets[i]) + 1, error);
}

int parameters_check_sets(const struct parameters *parameters, char *const *sets, size_t n_sets,
                          char error[static PARAMETER_ERROR_SIZE]) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_sets; i++)
        r = check_one(parameters, sets, i, error);
    return r;
}

const char *parameters_find_missing(const struct parameters *parameters, char *const *sets, size_t n_sets) {
    for (char *const *text = parameters->texts; text && *text; text++)
        if (!find(sets, n_sets, *text) && !find(parameters->environment, SIZE_MAX, *text))
            return *text;
    return NULL;
}

int parameters_check(const struct parameters *parameters, char *const *sets, size_t n_sets,
                     char error[static PARAMETER_ERROR_SIZE]) {
    const char *missing = parameters_find_missing(parameters, sets, n_sets);
    int r = parameters_check_sets(parameters, sets, n_sets, error);

    if (r == 0 && missing)
        r = fail(error, "job \"%s\" needs --set %.*s=...", parameters->job,
                 (int) parameter_name_length(missing), missing);
    return r;
}

int parameters_check_defaults(const struct parameters *parameters, char error[static PARAMETER_ERROR_SIZE]) {
    char why[PARAMETER_ERROR_SIZE];
    int r = 0;

    for (char *const *text = parameters->texts; r == 0 && text && *text; text++) {
        const char *value = find(parameters->environment, SIZE_MAX, *text);

        r = value ? check_value(*text, value + parameter_name_length(value) + 1, why) : 0;
        if (r == -EINVAL)
            return fail(error, "the default \"%.*s\" in environment is refused: %.350s", VALUE_SHOWN, value,
                        why);
    }
    return r;
}

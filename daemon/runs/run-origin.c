/* SPDX-License-Identifier: MIT */
#include "daemon/runs/run-origin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "conf/parameter.h"

#define OF "of-"
#define KEY_SIZE 32

static const char *const names[] = {
    [RUN_TRIGGER_START] = "start",       [RUN_TRIGGER_EVERY] = "every",
    [RUN_TRIGGER_AT_START] = "at-start", [RUN_TRIGGER_SCHEDULE] = "schedule",
    [RUN_TRIGGER_BACKLOG] = "backlog",   [RUN_TRIGGER_RETRY] = "retry",
    [RUN_TRIGGER_RESTART] = "restart",   [RUN_TRIGGER_HOOK] = "hook",
};

const char *run_trigger_name(enum run_trigger trigger) {
    return names[trigger];
}

enum run_trigger run_trigger_parse(const char *name) {
    for (size_t i = RUN_TRIGGER_START; i < ELEMENTSOF(names); i++)
        if (strcmp(name, names[i]) == 0)
            return (enum run_trigger) i;
    return RUN_TRIGGER_NONE;
}

int run_set_copy(char *const *set, char ***ret) {
    size_t n = 0;
    char **copy;

    *ret = NULL;
    while (set && set[n])
        n++;
    if (n == 0)
        return 0;
    copy = calloc(n + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < n; i++)
        if (!(copy[i] = strdup(set[i]))) {
            text_free_list(copy);
            return -ENOMEM;
        }
    *ret = copy;
    return copy ? 0 : -ENOMEM;
}

void run_origin_init(struct run_origin *origin, const char *run) {
    *origin = (struct run_origin){.attempt = 1};
    snprintf(origin->first_run, sizeof(origin->first_run), "%s", run);
}

void run_origin_done(struct run_origin *origin) {
    free(origin->of);
    origin->of = NULL;
    text_free_list(origin->set);
    origin->set = NULL;
}

/* Copies the value of a line, or "" if it is missing or too long. */
static void get_value(const char *lines, const char *key, size_t size, char *ret) {
    size_t n = strlen(key);

    ret[0] = '\0';
    for (const char *line = lines; *line; line = strchr(line, '\n') + 1)
        if (strncmp(line, key, n) == 0 && line[n] == '=' && strcspn(line + n + 1, "\n") < size)
            snprintf(ret, size, "%.*s", (int) strcspn(line + n + 1, "\n"), line + n + 1);
}

int run_origin_set_of(struct run_origin *origin, const char *lines) {
    size_t size = strlen(lines) + 1;
    struct run_of *of = malloc(sizeof(*of) + size);

    if (!of)
        return -ENOMEM;
    memcpy(of->lines, lines, size);
    get_value(lines, "of-job", sizeof(of->job), of->job);
    get_value(lines, "of-run", sizeof(of->run), of->run);
    free(origin->of);
    origin->of = of;
    return 0;
}

int run_origin_copy(struct run_origin *to, const struct run_origin *from) {
    struct run_origin copy = *from;

    copy.of = NULL;
    copy.set = NULL;
    if ((from->of && run_origin_set_of(&copy, from->of->lines) < 0) || run_set_copy(from->set, &copy.set) < 0) {
        run_origin_done(&copy);
        return -ENOMEM;
    }
    run_origin_done(to);
    *to = copy;
    return 0;
}

/* --- as fields of a message --- */

/* Adds the lines of `of`. */
static void put_of(const char *of, struct message_writer *w) {
    char key[KEY_SIZE], value[512 + 1];

    while (*of) {
        size_t n_key = strcspn(of, "="), n_line = strcspn(of, "\n");

        snprintf(key, sizeof(key), "%.*s", (int) n_key, of);
        snprintf(value, sizeof(value), "%.*s", (int) (n_line - n_key - 1), of + n_key + 1);
        message_put(w, key, value);
        of += n_line + (of[n_line] == '\n');
    }
}

void run_origin_put(const struct run_origin *origin, struct message_writer *w) {
    if (origin->trigger != RUN_TRIGGER_NONE)
        message_put(w, "trigger", names[origin->trigger]);
    if (origin->due[0])
        message_put(w, "due", origin->due);
    message_put_u64(w, "attempt", origin->attempt);
    message_put(w, "first-run", origin->first_run);
    if (origin->depth > 0)
        message_put_u64(w, "depth", origin->depth);
    for (unsigned i = 0; origin->set && origin->set[i]; i++)
        message_put_nth(w, "set", i, origin->set[i]);
    if (origin->of)
        put_of(origin->of->lines, w);
}

static int read_of(struct run_origin *origin, const struct message *m) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *f = NULL;

    for (size_t i = 0; i < m->n_fields; i++) {
        if (strncmp(m->fields[i].key, OF, strlen(OF)) != 0)
            continue;
        if (!f && !(f = open_memstream(&text, &size)))
            return -ENOMEM;
        fprintf(f, "%s=%s\n", m->fields[i].key, m->fields[i].value);
    }
    if (!f)
        return 0;
    return fclose(f) == 0 ? run_origin_set_of(origin, text) : -ENOMEM;
}

static int read_set(struct run_origin *origin, const struct message *m) {
    char *list[PARAMETERS_MAX + 1] = {NULL};

    for (unsigned i = 0; i < PARAMETERS_MAX; i++)
        if (!(list[i] = (char *) message_get_nth(m, "set", i)))
            break;
    text_free_list(origin->set);
    return run_set_copy(list, &origin->set);
}

static void read_number(const struct message *m, const char *key, uint32_t *at) {
    uint64_t value;

    if (message_get_u64(m, key, &value) == 0 && value <= UINT32_MAX)
        *at = (uint32_t) value;
}

int run_origin_read(struct run_origin *origin, const struct message *m) {
    const char *trigger = message_get(m, "trigger"), *due = message_get(m, "due");

    if (trigger)
        origin->trigger = run_trigger_parse(trigger);
    if (due)
        snprintf(origin->due, sizeof(origin->due), "%s", due);
    read_number(m, "attempt", &origin->attempt);
    (void) message_get_id(m, "first-run", origin->first_run);
    read_number(m, "depth", &origin->depth);
    return read_set(origin, m) < 0 ? -ENOMEM : read_of(origin, m);
}

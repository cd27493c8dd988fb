/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/remedy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"

#define INDENT "                       " /* of what to do, below a finding; 23 columns */

static void run_command(const struct host *on, const char *line) {
    _cleanup_free_ char *text = NULL;
    char *argv[] = {(char *) "/bin/sh", (char *) "-c", NULL, NULL};
    struct child *c;
    int k;

    if (strncmp(line, "berth ", 6) == 0)
        k = asprintf(&text, "%s/berth --socket %s %s", cluster.build, on->socket, line + 6);
    else
        k = asprintf(&text, "%s", line);
    TEST_FATAL(k > 0, "no memory");
    argv[2] = text;
    c = child_start(argv, NULL);
    CU_ASSERT(child_await(c, HOST_PATIENCE));
    if (c->exit_code != 0)
        fprintf(stderr, "%s: %s%s", line, child_text(c, 1), child_text(c, 2));
    TEST_INT(c->exit_code, 0);
    child_free(c);
}

/* Returns whether the line is a command; other lines are sentences, or end a command. */
static bool is_command(const char *line) {
    static const char *const programs[] = {"berth", "redis-cli", "kill", "chmod", "chown"};
    size_t n = strlen(INDENT);

    if (strncmp(line, INDENT, n) != 0)
        return false;
    for (size_t i = 0; i < ELEMENTSOF(programs); i++)
        if (strncmp(line + n, programs[i], strlen(programs[i])) == 0 && line[n + strlen(programs[i])] == ' ')
            return true;
    return false;
}

void remedy_run(struct host *asked, struct host *on, const char *check) {
    _cleanup_free_ char *said = NULL;
    unsigned n = 0;
    char *next;

    (void) berth(asked, "doctor -c %s --only %s", asked->config, check);
    said = strdup(berth_out);
    TEST_FATAL(said != NULL, "no memory");
    for (char *line = said; *line; line = next) {
        next = line;
        do /* a backslash continues a command */
            next += strcspn(next, "\n") + 1;
        while (next - line > 2 && next[-2] == '\\');
        next[-1] = '\0';
        if (!is_command(line))
            continue;
        run_command(on, line + strlen(INDENT));
        n++;
    }
    if (n == 0)
        TEST_STRING(berth_out, "a command");
}

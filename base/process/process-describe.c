/* SPDX-License-Identifier: MIT */
#include "base/process/process-describe.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FILE_SIZE 4096

/* "" if it cannot be read. */
static void read_file(pid_t pid, const char *name, char text[static FILE_SIZE]) {
    _cleanup_close_ int fd = -1;
    char path[48];
    ssize_t n;

    (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, FILE_SIZE - 1);
    text[n > 0 ? n : 0] = '\0';
}

/* Returns what follows the key in its line of /proc/PID/status; "": no such line. */
static const char *find_line(const char *status, const char *key, char value[static 32]) {
    const char *at = strstr(status, key);

    value[0] = '\0';
    if (at)
        (void) sscanf(at + strlen(key), " %31[^\n]", value);
    return value;
}

static void make_ascii(char *text) {
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

/* Returns whether this process has the user of a process, so that it may kill it (kill(2)), or is root. */
static bool may_kill(const char *status) {
    char value[32];
    unsigned real, effective, saved, own = geteuid();

    if (own == 0 || sscanf(find_line(status, "\nUid:", value), "%u %u %u", &real, &effective, &saved) != 3)
        return true;
    return own == real || own == saved || getuid() == real || getuid() == saved;
}

void process_describe(pid_t pid, char text[static PROCESS_TEXT_SIZE]) {
    char status[FILE_SIZE], wchan[FILE_SIZE], name[32], state[32], tracer[32];
    int n;

    text[0] = '\0';
    read_file(pid, "status", status);
    read_file(pid, "wchan", wchan);
    if (!status[0])
        return;
    find_line(status, "Name:", name);
    find_line(status, "\nState:", state);
    find_line(status, "\nTracerPid:", tracer);
    n = snprintf(text, PROCESS_TEXT_SIZE, "process %d (%s), state %.1s", (int) pid, name, state);
    if (wchan[0] && strcmp(wchan, "0") != 0)
        n += snprintf(text + n, PROCESS_TEXT_SIZE - (size_t) n, " in %.40s", wchan);
    if (tracer[0] && strcmp(tracer, "0") != 0)
        n += snprintf(text + n, PROCESS_TEXT_SIZE - (size_t) n, ", traced by process %.10s", tracer);
    if (!may_kill(status))
        (void) snprintf(text + n, PROCESS_TEXT_SIZE - (size_t) n, ", " PROCESS_OF_OTHERS);
    make_ascii(text);
}

/* SPDX-License-Identifier: MIT */

/* The options outside of sections. */

#include <string.h>

#include "base/duration.h"
#include "conf/settings-read.h"

#define STATE_DIRECTORY_DEFAULT "/var/lib/berth"

static usec_t whole_milliseconds(usec_t usec) {
    return usec - usec % USEC_PER_MSEC;
}

static void set_default_host(struct settings *s, const struct value_reader *reader, const char *hostname) {
    char own[NAME_MAX_LENGTH + 1] = "";

    if (value_is_given(reader, "host"))
        return;
    if (!hostname) {
        if (gethostname(own, sizeof(own)) < 0)
            own[0] = '\0';
        hostname = own;
    }
    if (name_is_valid(hostname))
        memcpy(s->host, hostname, strlen(hostname) + 1);
    else
        value_note(reader, &reader->section->place,
                   "host is not given, and the machine's hostname \"%s\" %s; write host = \"NAME\"", hostname,
                   name_explain(hostname));
}

/* The lease must hold two heartbeats and the margin. The stop timeouts of jobs are checked with the jobs. */
static void check_lease(const struct settings *s, const struct value_reader *reader) {
    char lease[DURATION_TEXT_SIZE], heartbeat[DURATION_TEXT_SIZE], margin[DURATION_TEXT_SIZE], least[DURATION_TEXT_SIZE];
    struct settings_place place = value_place(reader, value_is_given(reader, "heartbeat") ? "heartbeat" : "lease");

    if (s->lease_usec >= 2 * s->heartbeat_usec + settings_margin(s->lease_usec))
        return;
    value_note(reader, &place,
               "lease %s is shorter than 2 heartbeats of %s and a margin of %s; make it at least %s, or the heartbeat shorter",
               duration_format(s->lease_usec, lease), duration_format(s->heartbeat_usec, heartbeat),
               duration_format(settings_margin(s->lease_usec), margin),
               duration_format(settings_lease_min(2 * s->heartbeat_usec), least));
}

static void check_runtime_directory(const struct settings *s, const struct value_reader *reader) {
    size_t n = s->runtime_directory ? strlen(s->runtime_directory) : 0;

    if (n > RUNTIME_DIRECTORY_MAX)
        value_error(reader, "runtime-directory", 0, "has %zu bytes; sockets in it allow at most %d", n, RUNTIME_DIRECTORY_MAX);
    else if (n > 0 && s->runtime_directory[n - 1] == '/')
        value_error(reader, "runtime-directory", 0, "must not end in '/'");
}

/* With a runtime directory of its own, a berthd also has a state directory of its own. */
static char *default_state_directory(const struct settings *s) {
    char *path = NULL;

    if (strcmp(s->runtime_directory, RUNTIME_DIRECTORY_DEFAULT) == 0)
        return strdup(STATE_DIRECTORY_DEFAULT);
    return asprintf(&path, "%s/lasting", s->runtime_directory) < 0 ? NULL : path;
}

static void read_state_directory(struct settings *s, const struct value_reader *reader) {
    size_t n;

    if (!s->state_directory && s->runtime_directory) {
        s->state_directory = default_state_directory(s);
        reader->notes->out_of_memory |= !s->state_directory;
    }
    n = s->state_directory ? strlen(s->state_directory) : 0;
    if (n > 0 && s->state_directory[n - 1] == '/')
        value_error(reader, "state-directory", 0, "must not end in '/'");
    else if (n > 0 && s->runtime_directory && strcmp(s->state_directory, s->runtime_directory) == 0)
        value_error(reader, "state-directory", 0, "is the runtime directory, too; name another one, or leave it out");
}

void settings_read_top(struct settings *s, const struct parsed_section *top, const char *hostname, struct notes *notes) {
    const struct value_reader reader = {top, notes};

    option_read_section(&reader, s);
    set_default_host(s, &reader, hostname);
    if (s->heartbeat_usec == 0)
        s->heartbeat_usec = whole_milliseconds(s->lease_usec / 6);
    check_lease(s, &reader);
    check_runtime_directory(s, &reader);
    read_state_directory(s, &reader);
}

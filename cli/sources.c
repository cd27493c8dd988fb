/* SPDX-License-Identifier: MIT */
#include "cli/sources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"

static void print_damaged(const char *verb, const char *directory, const char *consequence) {
    fprintf(stderr, "berth %s: %s: %s: a file of it is damaged (journalctl --verify%s%s finds it)\n", verb,
            directory ? directory : "the journal", consequence, directory ? " --directory " : "", directory ? directory : "");
}

int sources_warn(const char *verb, const char *directory, struct journal_reader *reader) {
    int k = journal_reader_check(reader);

    if (k != -EBADMSG)
        return k;
    print_damaged(verb, directory, "entries are missing");
    return 0;
}

int sources_explain(const char *verb, const char *directory, int error) {
    if (error == -ENOMEM) {
        fprintf(stderr, "berth %s: %s\n", verb, strerror(ENOMEM));
        return EXIT_INTERNAL;
    }
    if (error == -EACCES)
        fprintf(
            stderr,
            "berth %s: %s: no permission to read it (root and the groups systemd-journal and adm have)\n",
            verb, directory ? directory : "the journal");
    else if (error == -ENODATA && directory)
        fprintf(stderr, "berth %s: %s: no journal found; name a folder that has *.journal files\n", verb, directory);
    else if (error == -ENODATA)
        fprintf(stderr, "berth %s: this machine has no journal; --directory DIR names a copy of one%s\n", verb,
                strcmp(verb, "history") == 0 ? " (`berth runs --all` lists what berthd remembers)" : "");
    else if (error == -EBADMSG)
        print_damaged(verb, directory, "cannot be read");
    else
        fprintf(stderr, "berth %s: %s: cannot be read: %s\n", verb, directory ? directory : "the journal", strerror(-error));
    return EXIT_UNKNOWN_NAME;
}

static int read_one(const char *verb, const struct sources *s, const char *directory, struct entries *ret) {
    _cleanup_(journal_reader_freep) struct journal_reader *reader = NULL;
    int k = journal_reader_new(&reader, directory, s->merged);

    k = k < 0 ? k : entries_read(ret, reader, s->unit);
    k = k < 0 ? k : s->may_lack ? sources_warn(verb, directory, reader) : journal_reader_check(reader);
    return k < 0 ? sources_explain(verb, directory, k) : 0;
}

int sources_read(const char *verb, const struct sources *s, struct entries *ret) {
    int status = 0;

    if (s->merged && s->directories.n > 0)
        return options_wrong_usage(verb, "-m and --directory exclude each other");
    if (s->directories.n == 0)
        return read_one(verb, s, NULL, ret);
    for (size_t i = 0; i < s->directories.n && status == 0; i++)
        status = read_one(verb, s, s->directories.items[i], ret);
    return status;
}

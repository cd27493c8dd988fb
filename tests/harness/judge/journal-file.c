/* SPDX-License-Identifier: MIT */
#include "tests/harness/judge/journal-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/child.h"
#include "tests/harness/host/host.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define PROGRAM "/lib/systemd/systemd-journal-remote"
#define PATIENCE (20 * USEC_PER_SEC)

bool journal_file_possible(void) {
    if (access(PROGRAM, X_OK) == 0)
        return true;
    test_skip("systemd-journal-remote is not installed");
    return false;
}

char journal_folder[32];

int journal_folder_make(void) {
    snprintf(journal_folder, sizeof(journal_folder), "/tmp/berth-journal-XXXXXX");
    return mkdtemp(journal_folder) ? 0 : 1;
}

int journal_folder_remove(void) {
    place_remove(journal_folder);
    berth_forget();
    return 0;
}

bool journal_files_once(bool (*make)(void)) {
    static bool made;

    if (!journal_file_possible())
        return false;
    if (!made)
        made = make();
    return made;
}

void journal_file_begin(struct journal_file *f, const char *host, unsigned number) {
    *f = (struct journal_file) {.host = host, .number = number, .pid = 100, .boot = 1, .cut = -1};
    f->stream = open_memstream(&f->text, &f->size);
    if (!f->stream)
        abort();
}

void journal_file_entry(struct journal_file *f, long at_msec, const char *fields, const char *message) {
    usec_t monotonic = (usec_t) at_msec * USEC_PER_MSEC, time = JOURNAL_FILE_EPOCH + monotonic;

    f->monotonic++; /* entries of one moment keep their order */
    if (f->n++ == f->cut)
        return;
    fprintf(f->stream,
            "__REALTIME_TIMESTAMP=%" PRIu64 "\n__MONOTONIC_TIMESTAMP=%" PRIu64 "\n_BOOT_ID=%031x%x\n_MACHINE_ID=%032x\n_HOSTNAME=%s\n"
            "MESSAGE=%s\n",
            time + f->monotonic, monotonic + f->monotonic,
            f->number + 16, f->boot, f->number + 1, f->host, message);
    for (const char *c = fields; *c; c++)
        fputc(*c == ' ' ? '\n' : *c, f->stream);
    fputs("\n\n", f->stream);
}

void journal_file_event(struct journal_file *f, long at_msec, const char *event, const char *fields) {
    char all[1024];

    snprintf(all, sizeof(all), "BERTH_EVENT=%s BERTH_SEQ=%lu _SYSTEMD_UNIT=berthd.service _PID=%u%s%s%s%s", event, ++f->seq, f->pid,
             strstr(fields, "BERTH_HOST=") ? "" : " BERTH_HOST=", strstr(fields, "BERTH_HOST=") ? "" : f->host, *fields ? " " : "",
             fields);
    journal_file_entry(f, at_msec, all, event);
}

void journal_file_restart(struct journal_file *f, bool new_boot) {
    f->pid++;
    f->boot += new_boot;
    f->seq = 0;
}

static bool convert(const char *from, const char *to) {
    char output[320];
    char *argv[] = {(char *) PROGRAM, (char *) "-o", output, (char *) from, NULL};
    struct child *c;
    bool good;

    snprintf(output, sizeof(output), "%s", to);
    c = child_start(argv, NULL);
    good = c && child_await(c, PATIENCE) && c->exit_code == 0;
    if (c && !good)
        printf("%s: %s\n", PROGRAM, child_text(c, 2));
    child_free(c);
    return good;
}

bool journal_file_write(struct journal_file *f, const char *directory) {
    char from[256], to[256];
    bool good = (mkdir(directory, 0755) == 0 || errno == EEXIST) && fclose(f->stream) == 0;

    snprintf(from, sizeof(from), "%s/%s.export", directory, f->host);
    snprintf(to, sizeof(to), "%s/%s.journal", directory, f->host);
    if (good) {
        _cleanup_fclose_ FILE *file = fopen(from, "we");

        good = file && fwrite(f->text, 1, f->size, file) == f->size;
    }
    free(f->text);
    f->text = NULL;
    f->stream = NULL;
    good = good && convert(from, to) && unlink(from) == 0;
    CU_ASSERT(good);
    return good;
}

/* systemd-journal-remote reads a FIFO, which we keep open at both ends. */
bool journal_file_open(struct journal_file *f, const char *host, unsigned number, const char *directory) {
    char fifo[256], output[256];
    char *argv[] = {(char *) PROGRAM, (char *) "-o", output, fifo, NULL};
    int fd = -1;

    snprintf(fifo, sizeof(fifo), "%s/%s.fifo", directory, host);
    snprintf(output, sizeof(output), "%s/%s.journal", directory, host);
    *f = (struct journal_file) {.host = host, .number = number, .pid = 100, .boot = 1, .cut = -1};
    if ((mkdir(directory, 0755) == 0 || errno == EEXIST) && mkfifo(fifo, 0600) == 0)
        fd = open(fifo, O_RDWR | O_CLOEXEC);
    f->stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    f->writer = f->stream ? child_start(argv, NULL) : NULL;
    CU_ASSERT(f->writer != NULL);
    return f->writer != NULL;
}

void journal_file_flush(struct journal_file *f) {
    CU_ASSERT(fflush(f->stream) == 0);
}

void journal_file_close(struct journal_file *f) {
    if (f->stream)
        (void) fclose(f->stream);
    f->stream = NULL;
    f->writer = child_free(f->writer);
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* Real journal files with made-up events of a host: written in the export format
 * (systemd.io/JOURNAL_EXPORT_FORMATS) and converted by systemd-journal-remote. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"

#define JOURNAL_FILE_EPOCH ((usec_t) 1763640000 * USEC_PER_SEC) /* realtime of millisecond 0 */

struct journal_file {
    const char *host;
    unsigned number;      /* seed of the host's machine id */
    unsigned pid, boot;
    unsigned long seq;    /* of the last event */
    int cut;              /* leaves out this entry (0 is the first) if it is not negative */
    int n;                /* entries so far, including those left out */
    usec_t monotonic;
    char *text;
    size_t size;
    FILE *stream;
    struct child *writer; /* of an open journal */
};

/* The folder of a suite's journals; both are CUnit's init and clean-up functions of a suite. */
extern char journal_folder[32];
int journal_folder_make(void);
int journal_folder_remove(void);
/* Returns whether the journals of make() exist; calls it for the first test that needs them. False: the test
 * is skipped, or make() failed. */
bool journal_files_once(bool (*make)(void));

/* Returns whether systemd-journal-remote is installed; otherwise skips the test by test_skip(). */
bool journal_file_possible(void);
void journal_file_begin(struct journal_file *f, const char *host, unsigned number);
/* Adds an event with the next BERTH_SEQ; fields: "BERTH_RUN=... BERTH_POOLS=..." split at spaces. BERTH_HOST
 * is added. */
void journal_file_event(struct journal_file *f, long at_msec, const char *event, const char *fields);
/* Adds any entry; fields as above. */
void journal_file_entry(struct journal_file *f, long at_msec, const char *fields, const char *message);
/* Begins another berthd, which counts events from 1. new_boot: after a reboot. */
void journal_file_restart(struct journal_file *f, bool new_boot);
/* Opens a journal DIRECTORY/HOST.journal that is written while others read it: journal_file_flush() makes
 * entries visible, journal_file_close() ends it. False after a failed assertion. */
bool journal_file_open(struct journal_file *f, const char *host, unsigned number, const char *directory);
void journal_file_flush(struct journal_file *f);
void journal_file_close(struct journal_file *f);
/* Makes DIRECTORY (if needed) and DIRECTORY/HOST.journal, and frees what is in f. False after a failed assertion. */
bool journal_file_write(struct journal_file *f, const char *directory);

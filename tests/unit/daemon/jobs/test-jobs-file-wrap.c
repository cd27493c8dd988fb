/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=clock_boottime,--wrap=record_file_open,--wrap=record_file_close,--wrap=record_file_sync */

/* berthd's memory of jobs while the disk does not answer: no due time waits for it longer than five seconds. */

#include "daemon/jobs/jobs-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/harness/test.h"

#define PATIENCE (5 * USEC_PER_SEC)

/* The patience of the module is over after 20 ms. */
usec_t __real_clock_boottime(void);
usec_t __wrap_clock_boottime(void);
usec_t __wrap_clock_boottime(void) {
    return __real_clock_boottime() + 20 * USEC_PER_MSEC - PATIENCE;
}

/* A disk that answers when the test calls its handler. */
static struct record_file_handler disk;
static uint64_t last;

int __wrap_record_file_open(struct record_file **ret, sd_event *event, const char *path,
                            const struct record_file_handler *handler);
int __wrap_record_file_open(struct record_file **ret, _unused_ sd_event *event, _unused_ const char *path,
                            const struct record_file_handler *handler) {
    disk = *handler;
    *ret = NULL;
    return 0;
}

struct record_file *__wrap_record_file_close(struct record_file *file);
struct record_file *__wrap_record_file_close(_unused_ struct record_file *file) {
    return NULL;
}

uint64_t __wrap_record_file_sync(struct record_file *file);
uint64_t __wrap_record_file_sync(_unused_ struct record_file *file) {
    return ++last;
}

static struct bed {
    char folder[64];
    sd_event *event;
    struct journal *journal;
    struct jobs_file *file;
    uint64_t synced; /* of the latest call of on_synced */
} bed;

static void on_synced(uint64_t sync, _unused_ void *userdata) {
    bed.synced = sync;
}

static void bed_up(void) {
    const struct jobs_file_handler handler = {.on_synced = on_synced};

    bed = (struct bed){.folder = "/tmp/berth-jobs-file-XXXXXX"};
    last = 0;
    CU_ASSERT_FATAL(mkdtemp(bed.folder) != NULL);
    CU_ASSERT_FATAL(sd_event_new(&bed.event) >= 0);
    CU_ASSERT_FATAL(journal_new(&bed.journal, "test") >= 0);
    TEST_INT(jobs_file_open(&bed.file, bed.event, bed.folder, bed.journal, &handler), 0);
}

static void bed_down(void) {
    bed.file = jobs_file_close(bed.file);
    bed.journal = journal_free(bed.journal);
    sd_event_unref(bed.event);
    (void) rmdir(bed.folder);
}

/* Syncs and waits until the module has given up. */
static void give_up(void) {
    uint64_t sync = jobs_file_sync(bed.file);
    usec_t end = clock_monotonic() + 20 * USEC_PER_SEC;

    CU_ASSERT_FATAL(sync > 0);
    while (bed.synced < sync && clock_monotonic() < end)
        (void) sd_event_run(bed.event, 100 * USEC_PER_MSEC);
    TEST_INT(bed.synced, sync);
    TEST_STRING(jobs_file_error(bed.file), "the disk does not answer");
}

static void test_hangs(void) {
    give_up();
    TEST_INT(jobs_file_sync(bed.file), 0);
    TEST_INT(jobs_file_sync(bed.file), 0);
}

static void test_answers(void) {
    give_up();
    TEST_INT(jobs_file_sync(bed.file), 0);
    disk.on_synced(1, 0, disk.userdata);
    TEST_STRING(jobs_file_error(bed.file), "");
    TEST_INT(jobs_file_sync(bed.file), 3);
    disk.on_synced(2, 0, disk.userdata);
    TEST_INT(bed.synced, 1);
    disk.on_synced(3, 0, disk.userdata);
    TEST_INT(bed.synced, 3);
}

/* A disk that fails answers at once; later it may hang. */
static void test_fails_then_hangs(void) {
    TEST_INT(jobs_file_sync(bed.file), 1);
    disk.on_synced(1, -ENOSPC, disk.userdata);
    TEST_INT(bed.synced, 1);
    give_up();
}

static CU_TestInfo tests[] = {
    {"a hanging disk delays only the first due time", test_hangs},
    {"due times wait again for a disk that answers", test_answers},
    {"a disk that failed before and then hangs", test_fails_then_hangs},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "jobs-file", .pSetUpFunc = bed_up, .pTearDownFunc = bed_down, .pTests = tests});

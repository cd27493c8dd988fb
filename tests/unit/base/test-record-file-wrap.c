/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=write,--wrap=fdatasync,--wrap=fsync,--wrap=open,--wrap=rename */

/* Record files: synced records are read again, whatever call fails and wherever the file is cut or
 * changed. */

#include "base/record-file.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

WRAP(FAULT_MEMORY, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAULT_MEMORY, NULL, void *, realloc, (void *p, size_t size), (p, size))

/* The calls of the writing thread: the n-th from now fails, or all of them wait. */
static atomic_int disk_fails_at, disk_error = ENOSPC;
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;

static bool disk_fails(void) {
    (void) pthread_mutex_lock(&disk);
    (void) pthread_mutex_unlock(&disk);
    if (atomic_load(&disk_fails_at) == 0 || atomic_fetch_sub(&disk_fails_at, 1) != 1)
        return false;
    errno = atomic_load(&disk_error);
    return true;
}

#define DISK(name, parameters, arguments)                                                                   \
    int __real_##name parameters;                                                                           \
    int __wrap_##name parameters;                                                                           \
    int __wrap_##name parameters {                                                                          \
        return disk_fails() ? -1 : __real_##name arguments;                                                 \
    }
DISK(fdatasync, (int fd), (fd))
DISK(fsync, (int fd), (fd))
DISK(rename, (const char *from, const char *to), (from, to))
DISK(open, (const char *path, int flags, mode_t mode), (path, flags, mode))
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size) {
    return size > 8 && disk_fails() ? -1 : __real_write(fd, data, size); /* 8: of an eventfd */
}

static struct bed {
    char folder[64], path[96];
    sd_event *event;
    struct record_file *file;
    char seen[256]; /* "a=1 b=2 " of what was read */
    unsigned n_damaged;
    char damage[640];
    uint64_t synced;
    int error;
} bed;

static void on_record(const char *key, const struct message *record, _unused_ void *userdata) {
    size_t n = strlen(bed.seen);

    snprintf(bed.seen + n, sizeof(bed.seen) - n, "%s=%s ", key, message_get(record, "value"));
}

static void on_synced(uint64_t sync, int error, _unused_ void *userdata) {
    bed.synced = sync;
    bed.error = error;
}

static void on_damage(const char *text, _unused_ void *userdata) {
    bed.n_damaged++;
    snprintf(bed.damage, sizeof(bed.damage), "%s", text);
}

static int open_file(void) {
    static const struct record_file_handler handler = {
        .on_record = on_record, .on_synced = on_synced, .on_damage = on_damage};

    bed.seen[0] = '\0';
    bed.n_damaged = 0;
    return record_file_open(&bed.file, bed.event, bed.path, &handler);
}

static void close_file(void) {
    bed.file = record_file_close(bed.file);
}

static int put(const char *key, const char *value) {
    struct message_writer w;

    message_begin(&w, "test");
    message_put(&w, "value", value);
    return record_file_put(bed.file, key, &w);
}

/* Returns the error of the sync. */
static int sync_file(void) {
    uint64_t sync = record_file_sync(bed.file);
    usec_t end = clock_monotonic() + 20 * USEC_PER_SEC;

    CU_ASSERT_FATAL(sync > 0);
    while (bed.synced < sync && clock_monotonic() < end)
        (void) sd_event_run(bed.event, 100 * USEC_PER_MSEC);
    TEST_INT(bed.synced, sync);
    return bed.error;
}

static void remove_files(void) {
    char aside[128];

    snprintf(aside, sizeof(aside), "%s.damaged", bed.path);
    (void) unlink(bed.path);
    (void) unlink(aside);
}

static void bed_up(void) {
    bed = (struct bed){.folder = "/tmp/berth-records-XXXXXX"};
    CU_ASSERT_FATAL(mkdtemp(bed.folder) != NULL);
    snprintf(bed.path, sizeof(bed.path), "%s/records", bed.folder);
    CU_ASSERT_FATAL(sd_event_new(&bed.event) >= 0);
}

static void bed_down(void) {
    close_file();
    sd_event_unref(bed.event);
    remove_files();
    (void) rmdir(bed.folder);
}

static void reopen(void) {
    close_file();
    bed.synced = 0;
    TEST_INT(open_file(), 0);
}

static void test_kept(void) {
    TEST_INT(open_file(), 0);
    TEST_INT(record_file_sync(bed.file), 0);
    TEST_INT(put("a", "1"), 0);
    TEST_INT(put("b", "1"), 0);
    TEST_INT(sync_file(), 0);
    TEST_INT(put("a", "2"), 0);
    TEST_INT(record_file_put(bed.file, "b", NULL), 0);
    TEST_INT(put("c", "3"), 0);
    TEST_INT(sync_file(), 0);
    TEST_INT(put("d", "4"), 0); /* written when it is closed */
    reopen();
    TEST_STRING(bed.seen, "a=2 c=3 d=4 ");
    TEST_INT(bed.n_damaged, 0);
}

static void test_one_sync_a_turn(void) {
    uint64_t first;

    TEST_INT(open_file(), 0);
    TEST_INT(put("a", "1"), 0);
    first = record_file_sync(bed.file);
    TEST_INT(put("b", "1"), 0);
    TEST_INT(record_file_sync(bed.file), first);
    TEST_INT(record_file_sync(bed.file), 0);
    TEST_INT(put("a", "2"), 0);
    TEST_INT(sync_file(), 0);
    TEST_INT(bed.synced, first);
}

static void test_rewritten(void) {
    struct stat st;

    TEST_INT(open_file(), 0);
    for (unsigned i = 0; i < 5000; i++) {
        char value[16];

        snprintf(value, sizeof(value), "%u", i);
        TEST_INT(put("a", value), 0);
        if (i % 100 == 99)
            TEST_INT(sync_file(), 0);
    }
    TEST_INT(stat(bed.path, &st), 0);
    CU_ASSERT(st.st_size < 80000); /* 5000 records are 250 000 bytes */
    reopen();
    TEST_STRING(bed.seen, "a=4999 ");
}

/* --- damage --- */

static char *good;
static size_t good_size;

static void make_good(void) {
    TEST_INT(open_file(), 0);
    TEST_INT(put("a", "1"), 0);
    TEST_INT(put("b", "2"), 0);
    TEST_INT(sync_file(), 0);
    TEST_INT(put("c", "3"), 0);
    TEST_INT(sync_file(), 0);
    close_file();
    TEST_INT(file_read(bed.path, 4096, &good, &good_size), 0);
}

static void open_text(const char *text, size_t size) {
    remove_files();
    TEST_INT(file_write_atomic(bed.path, text, size, 0600), 0);
    TEST_INT(open_file(), 0);
}

/* Only the records that are cut off are lost. */
static void test_cut_at_each_byte(void) {
    static const char *const prefixes[] = {"", "a=1 ", "a=1 b=2 ", "a=1 b=2 c=3 "};
    unsigned n_whole = 0, n_seen = 0;

    make_good();
    for (size_t size = 0; size <= good_size; size++) {
        open_text(good, size);
        while (n_seen < 3 && strcmp(bed.seen, prefixes[n_seen]) != 0)
            n_seen++;
        TEST_STRING(bed.seen, prefixes[n_seen]);
        n_whole += bed.n_damaged == 0;
        close_file();
    }
    TEST_INT(n_seen, 3);
    TEST_INT(n_whole, 5); /* nothing, the version, and behind each item */
    free(good);
}

/* A changed byte loses at most its own record. In the version it loses all records, and the file is kept. */
static void test_each_byte_changed(void) {
    const size_t version = strlen("berth-records 1\n");
    unsigned n_unseen = 0, n_wrong = 0;

    make_good();
    for (size_t i = 0; i < good_size; i++) {
        unsigned n = 0;

        good[i] ^= 1 << i % 8;
        open_text(good, good_size);
        good[i] ^= 1 << i % 8;
        n = (strstr(bed.seen, "a=1 ") != NULL) + (strstr(bed.seen, "b=2 ") != NULL) +
            (strstr(bed.seen, "c=3 ") != NULL);
        n_wrong += i < version ? n != 0 : n < 2 || strlen(bed.seen) != 4 * n;
        n_unseen += bed.n_damaged != 1;
        close_file();
    }
    TEST_INT(n_wrong, 0);
    TEST_INT(n_unseen, 0);
    free(good);
}

static void test_damaged_file_is_kept(void) {
    _cleanup_free_ char *kept = NULL;
    char aside[128];
    size_t size;

    open_text("berth-records 9\nput a 0 0\n", 26);
    TEST_INT(bed.n_damaged, 1);
    TEST_INT(put("n", "1"), 0);
    TEST_INT(sync_file(), 0);
    reopen();
    TEST_INT(bed.n_damaged, 0);
    TEST_STRING(bed.seen, "n=1 ");
    snprintf(aside, sizeof(aside), "%s.damaged", bed.path);
    TEST_INT(file_read(aside, 4096, &kept, &size), 0);
    TEST_STRING(kept, "berth-records 9\nput a 0 0\n");
}

static void test_damaged_file_cannot_be_kept(void) {
    char aside[128];

    snprintf(aside, sizeof(aside), "%s.damaged", bed.path);
    CU_ASSERT_FATAL(mkdir(aside, 0700) == 0);
    open_text("berth-records 9\nput a 0 0\n", 26);
    CU_ASSERT_PTR_NOT_NULL(strstr(bed.damage, "/records.damaged: File exists"));
    CU_ASSERT(rmdir(aside) == 0);
}

/* --- failing calls --- */

static void test_each_allocation_fails(void) {
    for (unsigned n = 1;; n++) {
        int r;

        remove_files();
        fault_begin(FAULT_MEMORY, n, 1);
        r = open_file();
        if (r == 0 && put("a", "1") == 0 && record_file_sync(bed.file) > 0)
            for (unsigned i = 0; i < 4; i++)
                (void) sd_event_run(bed.event, 10 * USEC_PER_MSEC);
        close_file();
        bed.synced = 0;
        if (!fault_end())
            break;
        TEST_INT(open_file(), 0);
        CU_ASSERT(strcmp(bed.seen, "") == 0 || strcmp(bed.seen, "a=1 ") == 0);
        TEST_INT(bed.n_damaged, 0);
        TEST_INT(put("a", "2"), 0);
        TEST_INT(sync_file(), 0);
        close_file();
        bed.synced = 0;
    }
}

/* A failed call is reported, and the next sync writes all. */
static void test_each_call_of_the_disk_fails(void) {
    for (int n = 1; n < 20; n++) {
        unsigned n_failed = 0;

        remove_files();
        bed.synced = 0;
        TEST_INT(open_file(), 0);
        atomic_store(&disk_fails_at, n);
        for (unsigned i = 0; i < 4; i++) {
            TEST_INT(put(i % 2 ? "odd" : "even", i < 2 ? "1" : "2"), 0);
            n_failed += sync_file() < 0;
        }
        if (atomic_load(&disk_fails_at) > 0) {
            atomic_store(&disk_fails_at, 0);
            CU_ASSERT(n > 8);
            return;
        }
        CU_ASSERT(n_failed <= 1); /* the sync of the folder may fail: not every file system can */
        TEST_INT(put("last", "1"), 0);
        TEST_INT(sync_file(), 0);
        reopen();
        TEST_STRING(bed.seen, "even=2 last=1 odd=2 ");
        TEST_INT(bed.n_damaged, 0);
        close_file();
    }
    CU_FAIL("more than 20 calls");
}

static void test_disk_full(void) {
    char fill[32768] = {};
    char path[96];
    int fd;

    TEST_NEEDS_ROOT();
    if (mount("tmpfs", bed.folder, "tmpfs", 0, "size=64k") < 0)
        TEST_SKIP("cannot mount a tmpfs here");
    TEST_INT(open_file(), 0);
    TEST_INT(put("a", "1"), 0);
    TEST_INT(sync_file(), 0);
    snprintf(path, sizeof(path), "%s/fill", bed.folder);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (__real_write(fd, fill, sizeof(fill)) > 0)
        ;
    (void) close(fd);
    for (unsigned i = 0; i < 200; i++)
        TEST_INT(put("a", "2 and much more, so that the page of the file is full before this ends"), 0);
    TEST_INT(sync_file(), -ENOSPC);
    TEST_INT(put("a", "3"), 0);
    TEST_INT(sync_file(), -ENOSPC);
    (void) unlink(path);
    TEST_INT(sync_file(), 0); /* the failed write is repeated, although nothing was put since */
    reopen();
    TEST_STRING(bed.seen, "a=3 ");
    close_file();
    TEST_INT(umount(bed.folder), 0);
}

/* The loop goes on while the disk hangs; all syncs in the meantime become one write. */
static void test_disk_hangs(void) {
    usec_t begin = clock_monotonic();

    TEST_INT(open_file(), 0);
    (void) pthread_mutex_lock(&disk);
    TEST_INT(put("a", "1"), 0);
    TEST_INT(record_file_sync(bed.file), 1);
    (void) sd_event_run(bed.event, 10 * USEC_PER_MSEC);
    for (unsigned i = 0; i < 10; i++) {
        TEST_INT(put("b", "1"), 0);
        TEST_INT(record_file_sync(bed.file), 2);
        (void) sd_event_run(bed.event, 5 * USEC_PER_MSEC);
    }
    CU_ASSERT(clock_monotonic() - begin < USEC_PER_SEC);
    TEST_INT(bed.synced, 0);
    (void) pthread_mutex_unlock(&disk);
    TEST_INT(put("c", "1"), 0);
    TEST_INT(sync_file(), 0);
    reopen();
    TEST_STRING(bed.seen, "a=1 b=1 c=1 ");
}

static CU_TestInfo tests[] = {
    {"kept", test_kept},
    {"one-sync-a-turn", test_one_sync_a_turn},
    {"rewritten", test_rewritten},
    {"cut-at-each-byte", test_cut_at_each_byte},
    {"each-byte-changed", test_each_byte_changed},
    {"damaged-file-is-kept", test_damaged_file_is_kept},
    {"damaged-file-cannot-be-kept", test_damaged_file_cannot_be_kept},
    {"each-allocation-fails", test_each_allocation_fails},
    {"each-call-of-the-disk-fails", test_each_call_of_the_disk_fails},
    {"disk-full", test_disk_full},
    {"disk-hangs", test_disk_hangs},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "record-file", .pSetUpFunc = bed_up, .pTearDownFunc = bed_down, .pTests = tests});

/* SPDX-License-Identifier: MIT */

#include "base/schedule/zone.h"

#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/schedule/zone-data.h"

#define LOCAL_FILE "/etc/localtime"
#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_+-"

struct zone *zone_free(struct zone *zone) {
    if (!zone)
        return NULL;
    free(zone->changes);
    free(zone->path);
    free(zone);
    return NULL;
}

/* ---- files ---- */

bool zone_name_is_valid(const char *name) {
    size_t n = strspn(name, NAME_LETTERS);

    return n > 0 && n <= ZONE_NAME_MAX && name[n] == '\0' && name[0] != '/';
}

static int load(const char *path, struct zone **ret) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    _cleanup_(zone_freep) struct zone *zone = NULL;
    _cleanup_free_ char *data = NULL;
    struct stat file;
    size_t size;
    int r;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? ZONE_E_UNKNOWN : -errno;
    if (fstat(fd, &file) < 0)
        return -errno;
    if (!S_ISREG(file.st_mode))
        return ZONE_E_UNKNOWN;
    r = file_read_fd(fd, ZONE_FILE_MAX, &data, &size);
    if (r == -EFBIG)
        return ZONE_E_INVALID;
    if (r == 0)
        r = zone_parse(data, size, &zone);
    if (r != 0)
        return r;
    zone->file = file;
    *ret = steal_pointer(&zone);
    return 0;
}

static int make_utc(struct zone **ret) {
    *ret = calloc(1, sizeof(**ret));
    return *ret ? 0 : -ENOMEM;
}

static int load_named(const char *directory, const char *name, struct zone **ret, char **ret_path) {
    int n;

    if (!zone_name_is_valid(name))
        return ZONE_E_UNKNOWN;
    n = asprintf(ret_path, "%s/%s", directory, name);
    if (n < 0) {
        *ret_path = NULL;
        return -ENOMEM;
    }
    return load(*ret_path, ret);
}

static int load_local(struct zone **ret, char **ret_path) {
    int r;

    *ret_path = strdup(LOCAL_FILE);
    if (!*ret_path)
        return -ENOMEM;
    r = load(*ret_path, ret);
    if (r != ZONE_E_UNKNOWN)
        return r;
    r = make_utc(ret);
    if (r == 0)
        (*ret)->is_missing = true;
    return r;
}

int zone_load(const char *directory, const char *name, struct zone **ret) {
    _cleanup_(zone_freep) struct zone *zone = NULL;
    _cleanup_free_ char *path = NULL;
    int r;

    if (strcmp(name, "UTC") == 0)
        return make_utc(ret);
    r = strcmp(name, "local") == 0 ? load_local(&zone, &path) : load_named(directory, name, &zone, &path);
    if (r != 0)
        return r;
    zone->path = steal_pointer(&path);
    *ret = steal_pointer(&zone);
    return 0;
}

bool zone_has_changed(const struct zone *zone) {
    const struct stat *old = &zone->file;
    struct stat now;

    if (!zone->path)
        return false;
    if (stat(zone->path, &now) < 0)
        return !zone->is_missing;
    return zone->is_missing || now.st_dev != old->st_dev || now.st_ino != old->st_ino ||
           now.st_size != old->st_size || now.st_mtim.tv_sec != old->st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != old->st_mtim.tv_nsec;
}

/* ---- offsets ---- */

/* Returns the number of changes at t or before it. */
static size_t count(const struct zone *zone, int64_t t) {
    size_t low = 0, high = zone->n_changes;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (zone->changes[middle].at <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t zone_offset(const struct zone *zone, int64_t t) {
    size_t n = count(zone, t);

    return n > 0 ? zone->changes[n - 1].offset : zone->first_offset;
}

int64_t zone_transition_after(const struct zone *zone, int64_t t) {
    size_t n = count(zone, t);

    return n < zone->n_changes ? zone->changes[n].at : INT64_MAX;
}

int64_t zone_transition_before(const struct zone *zone, int64_t t) {
    size_t n = count(zone, t);

    return n > 0 ? zone->changes[n - 1].at : INT64_MIN;
}

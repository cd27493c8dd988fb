/* SPDX-License-Identifier: MIT */

/* Explains why a zone could not be loaded, and which one was probably meant. */

#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/schedule/zone.h"

#define LEAP_FOLDER "right/" /* of files that count leap seconds */

struct names {
    const char *directory;
    char folder[ZONE_NAME_MAX + 2]; /* "", "America/" */
    char **items;
    size_t n;
};

static int add_name(const char *entry, void *userdata);

static int add_folder(struct names *names, const char *folder) {
    char before[sizeof(names->folder)], path[PATH_MAX];
    int r;

    memcpy(before, names->folder, sizeof(before));
    snprintf(names->folder, sizeof(names->folder), "%.*s/", ZONE_NAME_MAX, folder);
    snprintf(path, sizeof(path), "%s/%s", names->directory, folder);
    r = directory_each(path, add_name, names);
    memcpy(names->folder, before, sizeof(before));
    return r == -ENOMEM ? r : 0;
}

static int add_zone(struct names *names, const char *name) {
    if (!array_grow(names->items, names->n))
        return -ENOMEM;
    names->items[names->n] = strdup(name);
    if (!names->items[names->n])
        return -ENOMEM;
    names->n++;
    return 0;
}

/* Adds a zone, or those in a folder. Zones begin with a capital letter; the folders "posix" and "right" repeat all of
 * them. */
static int add_name(const char *entry, void *userdata) {
    struct names *names = userdata;
    char name[NAME_MAX + ZONE_NAME_MAX + 3], path[PATH_MAX];
    struct stat st;

    snprintf(name, sizeof(name), "%s%s", names->folder, entry);
    if (!isupper((unsigned char) entry[0]) || !zone_name_is_valid(name))
        return 0;
    snprintf(path, sizeof(path), "%s/%s", names->directory, name);
    if (stat(path, &st) < 0)
        return 0;
    return S_ISDIR(st.st_mode) ? add_folder(names, name) : add_zone(names, name);
}

/* Proposes the nearest name, unless there is no memory. */
static void explain_unknown(const char *directory, const char *name, char *buffer) {
    struct names names = {.directory = directory};
    const char *near;

    (void) directory_each(directory, add_name, &names);
    near = nearest(name, (const char *const *) names.items, names.n);
    if (near)
        snprintf(buffer, ZONE_EXPLAIN_SIZE, "is not in %.100s; did you mean \"%s\"?", directory, near);
    else
        snprintf(buffer, ZONE_EXPLAIN_SIZE, "is not in %.100s; install tzdata, or correct the name",
                 directory);
    for (size_t i = 0; i < names.n; i++)
        free(names.items[i]);
    free(names.items);
}

const char *zone_explain(const char *directory, const char *name, int answer,
                         char buffer[static ZONE_EXPLAIN_SIZE]) {
    size_t folder = strlen(LEAP_FOLDER);
    const char *other = strncmp(name, LEAP_FOLDER, folder) == 0 ? name + folder : "UTC";

    if (answer == ZONE_E_UNKNOWN)
        explain_unknown(directory, name, buffer);
    else if (answer == ZONE_E_LEAP)
        snprintf(buffer, ZONE_EXPLAIN_SIZE,
                 "counts leap seconds, which the clock of this machine does not; write \"%.64s\"", other);
    else if (answer == ZONE_E_INVALID)
        snprintf(buffer, ZONE_EXPLAIN_SIZE,
                 "is no zone file that berth can read; install tzdata again, or name another zone");
    else
        snprintf(buffer, ZONE_EXPLAIN_SIZE, "cannot be read: %s; repair it, or name another zone",
                 strerror(-answer));
    return buffer;
}

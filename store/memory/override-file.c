/* SPDX-License-Identifier: MIT */
#include "store/memory/override-file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"

#define FILE_SIZE_MAX (16 * 1024 * 1024)

/* A line is POOL KIND LIMIT UNTIL REASON. The first line is the boot. */
static void put(FILE *f, const struct pool *pool, const struct pool_override *o) {
    if (o->is_set)
        fprintf(f, "%s %s %" PRIu32 " %" PRIu64 " %s\n", pool->name, o->is_pause ? "pause" : "set", o->limit,
                o->until == USEC_INFINITY ? 0 : o->until, o->reason ? o->reason : "");
}

static int format(const char *boot, struct pools *pools, char **ret, size_t *ret_size, bool *ret_any) {
    FILE *f = open_memstream(ret, ret_size);

    if (!f)
        return -ENOMEM;
    fprintf(f, "%s\n", boot);
    list_foreach(pool, &pools->pools, struct pool, link) {
        put(f, pool, &pool->replaced); /* a pause, which follows, replaces it again */
        put(f, pool, &pool->override);
        *ret_any |= pool->override.is_set;
    }
    return fclose(f) == 0 ? 0 : -ENOMEM;
}

int override_file_save(const char *path, const char *boot, struct pools *pools) {
    _cleanup_free_ char *text = NULL;
    bool any = false;
    size_t size;
    int r = format(boot, pools, &text, &size, &any);

    if (r < 0)
        return r;
    if (!any)
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
    return file_write_atomic(path, text, size, 0600);
}

static int load_line(char *line, struct pools *pools) {
    const char *name = strsep(&line, " "), *kind = strsep(&line, " "), *limit_text = strsep(&line, " "), *until_text = strsep(&line, " ");
    uint64_t limit, until;
    struct pool *pool;
    int r;

    if (!line || number_parse(limit_text, UINT32_MAX, &limit) < 0 || number_parse(until_text, NUMBER_MAX, &until) < 0)
        return -EBADMSG;
    r = pools_get(pools, name, &pool);
    if (r < 0 || !pool || !pool_is_defined(pool)) /* the config has it no more */
        return r;
    if (until == 0)
        until = USEC_INFINITY;
    if (strcmp(kind, "pause") == 0)
        return pool_pause(pool, until, *line ? line : NULL);
    return strcmp(kind, "set") == 0 ? pool_override(pool, (uint32_t) limit, until, *line ? line : NULL) : -EBADMSG;
}

int override_file_load(const char *path, const char *boot, struct pools *pools) {
    _cleanup_free_ char *text = NULL;
    char *rest, *line;
    size_t size;
    int r = file_read(path, FILE_SIZE_MAX, &text, &size);

    if (r < 0)
        return r;
    rest = text;
    line = strsep(&rest, "\n");
    if (strcmp(line, boot) != 0)
        return 0;
    while (r == 0 && rest && *rest) {
        line = strsep(&rest, "\n");
        r = load_line(line, pools);
    }
    return r;
}

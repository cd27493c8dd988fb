/* SPDX-License-Identifier: MIT */

/* TZif files (RFC 9636, 3). They begin with a block of 32-bit times, which is skipped. The block of 64-bit
 * times and the footer count. */

#include <string.h>

#include "base/array.h"
#include "base/schedule/zone-data.h"

#define HEADER_SIZE 44
#define TYPE_SIZE 6
#define FOOTER_MAX 128

struct counts {
    uint32_t utc_marks, standard_marks, leaps, times, types, letters; /* in the order of the file */
};

struct bytes { /* that are not read yet */
    const uint8_t *at;
    size_t n;
};

static uint64_t big_endian(const uint8_t *at, size_t n) {
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++)
        value = value << 8 | at[i];
    return value;
}

/* Returns the next n bytes; NULL: there are fewer. */
static const uint8_t *take(struct bytes *bytes, uint64_t n) {
    const uint8_t *at = bytes->at;

    if (n > bytes->n)
        return NULL;
    bytes->at += n;
    bytes->n -= n;
    return at;
}

static bool take_header(struct bytes *bytes, struct counts *ret) {
    const uint8_t *at = take(bytes, HEADER_SIZE);

    if (!at || memcmp(at, "TZif", 4) != 0 || at[4] < '2')
        return false;
    *ret = (struct counts){(uint32_t) big_endian(at + 20, 4), (uint32_t) big_endian(at + 24, 4),
                           (uint32_t) big_endian(at + 28, 4), (uint32_t) big_endian(at + 32, 4),
                           (uint32_t) big_endian(at + 36, 4), (uint32_t) big_endian(at + 40, 4)};
    return true;
}

/* time_size: bytes of a time */
static uint64_t block_size(const struct counts *n, unsigned time_size) {
    return (uint64_t) n->times * (time_size + 1) + (uint64_t) n->types * TYPE_SIZE + n->letters +
           (uint64_t) n->leaps * (time_size + 4) + n->standard_marks + n->utc_marks;
}

/* ---- changes ---- */

int zone_add_change(struct zone *zone, int64_t at, int32_t offset) {
    const struct zone_change *last = zone->n_changes > 0 ? &zone->changes[zone->n_changes - 1] : NULL;

    if (offset == (last ? last->offset : zone->first_offset))
        return 0;
    if (last && at - last->at < ZONE_CHANGES_APART)
        return ZONE_E_INVALID;
    if (!array_grow(zone->changes, zone->n_changes))
        return -ENOMEM;
    zone->changes[zone->n_changes++] = (struct zone_change){at, offset};
    return 0;
}

static bool read_offset(const uint8_t *types, const struct counts *n, unsigned type, int32_t *ret) {
    if (type >= n->types)
        return false;
    *ret = (int32_t) big_endian(types + (size_t) type * TYPE_SIZE, 4);
    return *ret >= -ZONE_OFFSET_MAX && *ret <= ZONE_OFFSET_MAX;
}

/* times: followed by their types. *ret_last: the last of the times. */
static int add_changes(struct zone *zone, const uint8_t *times, const struct counts *n, int64_t *ret_last) {
    const uint8_t *type_of = times + (size_t) n->times * 8, *types = type_of + n->times;
    int64_t before = INT64_MIN;
    int r = 0;

    if (!read_offset(types, n, 0, &zone->first_offset))
        return ZONE_E_INVALID;
    for (uint32_t i = 0; i < n->times && r == 0; i++) {
        int64_t at = (int64_t) big_endian(times + (size_t) i * 8, 8);
        int32_t offset;

        if (!read_offset(types, n, type_of[i], &offset) || (i > 0 && at <= before))
            return ZONE_E_INVALID;
        if (at < -ZONE_TIME_MAX)
            zone->first_offset = offset;
        else if (at < ZONE_TIME_MAX)
            r = zone_add_change(zone, at, offset);
        before = at;
    }
    *ret_last = before;
    return r;
}

/* ---- the file ---- */

/* Copies the text between the newlines of the footer. */
static bool read_footer(struct bytes bytes, char ret[static FOOTER_MAX]) {
    const uint8_t *end = bytes.n > 1 ? memchr(bytes.at + 1, '\n', bytes.n - 1) : NULL;
    size_t n = end ? (size_t) (end - bytes.at - 1) : 0;

    if (!end || bytes.at[0] != '\n' || n >= FOOTER_MAX || memchr(bytes.at, '\0', n + 1))
        return false;
    memcpy(ret, bytes.at + 1, n);
    ret[n] = '\0';
    return true;
}

static int parse(struct bytes bytes, struct zone *zone) {
    char footer[FOOTER_MAX];
    const uint8_t *times;
    struct counts n;
    int64_t last;
    int r;

    if (!take_header(&bytes, &n) || !take(&bytes, block_size(&n, 4)) || !take_header(&bytes, &n))
        return ZONE_E_INVALID;
    times = take(&bytes, block_size(&n, 8));
    if (!times || n.times > ZONE_TRANSITIONS_MAX || !read_footer(bytes, footer))
        return ZONE_E_INVALID;
    if (n.leaps > 0)
        return ZONE_E_LEAP;
    r = add_changes(zone, times, &n, &last);
    if (r != 0 || footer[0] == '\0')
        return r;
    return zone_add_rule(zone, footer, last, n.times == 0);
}

int zone_parse(const void *data, size_t size, struct zone **ret) {
    _cleanup_(zone_freep) struct zone *zone = NULL;
    int r;

    if (size > ZONE_FILE_MAX)
        return ZONE_E_INVALID;
    zone = calloc(1, sizeof(*zone));
    if (!zone)
        return -ENOMEM;
    r = parse((struct bytes){data, size}, zone);
    if (r == 0)
        *ret = steal_pointer(&zone);
    return r;
}

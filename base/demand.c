/* SPDX-License-Identifier: MIT */
#include "base/demand.h"

#include <string.h>

#include "base/number.h"

static int demands_add_span(struct demands *d, const char *text, size_t n) {
    struct demand item = {.permits = 1};
    const char *colon = memchr(text, ':', n);
    size_t name_length = colon ? (size_t) (colon - text) : n;
    uint64_t total = 0;

    if (name_length > POOL_NAME_MAX_LENGTH)
        return DEMAND_E_NAME;
    memcpy(item.pool, text, name_length);
    if (!pool_name_is_claimable(item.pool))
        return pool_name_parse(item.pool) == POOL_NAME_PATTERN ? DEMAND_E_PATTERN : DEMAND_E_NAME;
    if (colon) {
        char digits[8] = "";
        size_t length = n - name_length - 1;
        uint64_t permits;

        if (length >= sizeof(digits)) /* 1000 has four digits: a longer number is too large, or begins with 0 */
            return strspn(colon + 1, "0123456789") >= length && colon[1] != '0' ? DEMAND_E_PERMITS : DEMAND_E_SYNTAX;
        memcpy(digits, colon + 1, length);
        switch (number_parse(digits, DEMAND_PERMITS_MAX, &permits)) {
        case -EINVAL:
            return DEMAND_E_SYNTAX;
        case 0:
            break;
        default:
            return DEMAND_E_PERMITS;
        }
        if (permits == 0)
            return DEMAND_E_PERMITS;
        item.permits = (uint32_t) permits;
    }
    if (demands_get(d, item.pool) > 0)
        return DEMAND_E_TWICE;
    if (d->n == DEMAND_POOLS_MAX)
        return DEMAND_E_MANY;
    for (size_t i = 0; i < d->n; i++)
        total += d->items[i].permits;
    if (total + item.permits > DEMAND_PERMITS_MAX)
        return DEMAND_E_PERMITS;
    d->items[d->n++] = item;
    return 0;
}

int demands_add(struct demands *d, const char *text) {
    if (*text == '@') /* the pool of a job, which is for its runs alone */
        return DEMAND_E_NAME;
    return demands_add_span(d, text, strlen(text));
}

const char *demands_explain(int answer) {
    switch (answer) {
    case DEMAND_E_SYNTAX:
        return "must be POOL or POOL:PERMITS";
    case DEMAND_E_NAME:
        return "must name a pool with 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-' (or NAME/KEY)";
    case DEMAND_E_PATTERN:
        return "names a pattern; name one key in place of the star";
    case DEMAND_E_PERMITS:
        return "permits must be 1 to 1000, in all pools together";
    case DEMAND_E_TWICE:
        return "names a pool twice; ask for all its permits at once, POOL:PERMITS";
    case DEMAND_E_MANY:
        return "names more than 32 pools";
    }
    return "is right";
}

uint32_t demands_get(const struct demands *d, const char *pool) {
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->items[i].pool, pool) == 0)
            return d->items[i].permits;
    return 0;
}

int demands_parse(const char *text, struct demands *ret) {
    struct demands d = {};

    while (*text != '\0') {
        size_t n = strcspn(text, ",");
        int r = demands_add_span(&d, text, n);

        if (r != 0)
            return r;
        if (text[n] == ',' && text[n + 1] == '\0')
            return DEMAND_E_SYNTAX;
        text += n + (text[n] == ',');
    }
    *ret = d;
    return 0;
}

const char *demands_format_refs(const struct demand_ref *refs, size_t n, char buffer[static DEMANDS_TEXT_SIZE]) {
    size_t length = 0;

    buffer[0] = '\0';
    for (size_t i = 0; i < n; i++)
        length += (size_t) snprintf(buffer + length, DEMANDS_TEXT_SIZE - length, "%s%s:%" PRIu32, i > 0 ? "," : "",
                                    refs[i].pool, refs[i].permits);
    return buffer;
}

void demands_get_refs(const struct demands *d, struct demand_ref ret[static DEMAND_POOLS_MAX]) {
    for (size_t i = 0; i < d->n; i++)
        ret[i] = (struct demand_ref) {d->items[i].pool, d->items[i].permits};
}

const char *demands_format(const struct demands *d, char buffer[static DEMANDS_TEXT_SIZE]) {
    struct demand_ref refs[DEMAND_POOLS_MAX];

    demands_get_refs(d, refs);
    return demands_format_refs(refs, d->n, buffer);
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* Bounds the memory that one reply of Redis may use. hiredis bounds neither the size of a reply nor (since 1.0) its depth, and
 * hiredis 0.14 trusts the count that an array announces (CVE-2021-32765). */

#include <stddef.h>

struct redisReader;
struct redisReply;

struct redis_bounds {  /* of one reply */
    size_t elements;   /* in all its lists */
    size_t depth;      /* nesting of lists */
    size_t size;       /* bytes of all its texts, and of input that is not parsed yet */
};
extern const struct redis_bounds redis_bounds_reply;   /* of a command */
extern const struct redis_bounds redis_bounds_push;   /* on a subscription */

struct redis_meter {   /* initialise with {} */
    const struct redis_bounds *bounds;
    size_t elements, size;
    char excess[80];   /* the bound that was exceeded, for people; "": none */
};

/* Bounds the replies of a reader by m->bounds. A reply that exceeds a bound is a reader's error, and m->excess names the bound. The
 * meter must outlive the reader. */
void redis_meter_attach(struct redis_meter *m, struct redisReader *reader);
/* Takes the next reply that was read. 1: *ret is a reply, to be freed; 0: it is not complete yet; -EBADMSG: `text`
 * is the reason why none will come. */
int redis_meter_next(struct redis_meter *m, struct redisReader *reader, struct redisReply **ret, char *text, size_t size);

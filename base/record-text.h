/* SPDX-License-Identifier: MIT */
#pragma once

/* The text of a record file (base/record-file.h). No I/O. It has a line with the version, then items:
 *
 *     berth-records 1\n
 *     \nput KEY SIZE CHECKSUM\n      and SIZE bytes, the record
 *     \nforget KEY 0 CHECKSUM\n
 *
 * The newline before an item keeps damage to the last byte of one item from the next one. No line of a record looks like
 * the line of an item, because a message has no verb or key with a space. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_KEY_MAX 128       /* of ! to ~ */
#define RECORD_TEXT_HEAD_MAX 192 /* an item without its record */
#define RECORD_TEXT_VERSION "berth-records 1\n"

bool record_key_is_valid(const char *key);

/* Formats the part of an item before its record, NUL-terminated. Returns its length. record: NULL: "forget". */
size_t record_text_format(const char *key, const char *record, size_t size,
                          char buffer[static RECORD_TEXT_HEAD_MAX]);

struct record_item {
    char key[RECORD_KEY_MAX + 1];
    bool is_forgotten;
    const char *record; /* in the text; not NUL-terminated */
    size_t size;
};

struct record_reader {
    const char *at, *end;
    size_t lost; /* bytes that belong to no whole item */
};

/* False: the text does not begin with this version, and all of it is lost. An empty text is valid. */
bool record_reader_init(struct record_reader *reader, const char *text, size_t size);
/* Reads the next whole item. Returns false at the end. */
bool record_reader_next(struct record_reader *reader, struct record_item *ret);

/* SPDX-License-Identifier: MIT */
#include "base/record-text.h"

#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/number.h"

#define PUT "put "
#define FORGET "forget "

bool record_key_is_valid(const char *key) {
    size_t n = strlen(key);

    for (const char *c = key; *c; c++)
        if (*c < '!' || *c > '~')
            return false;
    return n > 0 && n <= RECORD_KEY_MAX;
}

/* 64-bit FNV-1a: any change of up to eight bytes in a row changes it. */
static uint64_t hash(uint64_t sum, const char *data, size_t size) {
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ (unsigned char) data[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static uint64_t checksum(bool is_forgotten, const char *key, const char *record, size_t size) {
    uint64_t sum =
        hash(UINT64_C(0xcbf29ce484222325), is_forgotten ? FORGET : PUT, strlen(is_forgotten ? FORGET : PUT));

    sum = hash(sum, key, strlen(key) + 1);
    return hash(sum, record, size);
}

size_t record_text_format(const char *key, const char *record, size_t size,
                          char buffer[static RECORD_TEXT_HEAD_MAX]) {
    return (size_t) snprintf(buffer, RECORD_TEXT_HEAD_MAX, "\n%s%s %zu %016" PRIx64 "\n",
                             record ? PUT : FORGET, key, record ? size : 0,
                             checksum(!record, key, record ? record : "", record ? size : 0));
}

bool record_reader_init(struct record_reader *reader, const char *text, size_t size) {
    size_t n = strlen(RECORD_TEXT_VERSION);

    *reader = (struct record_reader){.at = text, .end = text + size};
    if (size == 0)
        return true;
    if (size >= n && memcmp(text, RECORD_TEXT_VERSION, n) == 0) {
        reader->at += n;
        return true;
    }
    reader->at = reader->end;
    reader->lost = size;
    return false;
}

/* Copies the word up to this delimiter, and moves *at behind it. Returns false if the delimiter is missing or the
 * word is too long. */
static bool cut(const char **at, const char *end, char delimiter, char *word, size_t word_size) {
    const char *stop = memchr(*at, delimiter, (size_t) (end - *at));

    if (!stop || (size_t) (stop - *at) >= word_size || memchr(*at, '\0', (size_t) (stop - *at)))
        return false;
    memcpy(word, *at, (size_t) (stop - *at));
    word[stop - *at] = '\0';
    *at = stop + 1;
    return true;
}

/* Reads the item at *at, and moves *at behind it. False: there is no whole item. */
static bool read_item(const char **at, const char *end, struct record_item *ret) {
    const char *p = *at + 1, *stop = memchr(p, '\n', (size_t) (end - p));
    char verb[8], size_text[24], sum[17], expected[RECORD_TEXT_HEAD_MAX];
    uint64_t size;
    size_t n;

    if (**at != '\n' || !stop || !cut(&p, stop + 1, ' ', verb, sizeof(verb)) ||
        !cut(&p, stop + 1, ' ', ret->key, sizeof(ret->key)) ||
        !cut(&p, stop + 1, ' ', size_text, sizeof(size_text)) ||
        !cut(&p, stop + 1, '\n', sum, sizeof(sum)) || number_parse(size_text, MESSAGE_SIZE_MAX, &size) < 0 ||
        !record_key_is_valid(ret->key) || size > (size_t) (end - p))
        return false;
    ret->is_forgotten = strcmp(verb, "forget") == 0;
    ret->record = p;
    ret->size = (size_t) size;
    n = record_text_format(ret->key, ret->is_forgotten ? NULL : p, ret->size, expected);
    if (n != (size_t) (p - *at) || memcmp(expected, *at, n) != 0)
        return false;
    *at = p + (ret->is_forgotten ? 0 : ret->size);
    return true;
}

bool record_reader_next(struct record_reader *reader, struct record_item *ret) {
    while (reader->at < reader->end) {
        const char *line;

        if (read_item(&reader->at, reader->end, ret))
            return true;
        line = memchr(reader->at + 1, '\n', (size_t) (reader->end - reader->at - 1));
        if (!line)
            line = reader->end;
        reader->lost += (size_t) (line - reader->at);
        reader->at = line;
    }
    return false;
}

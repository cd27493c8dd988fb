/* SPDX-License-Identifier: MIT */

/* Record files: whatever is in one, each item that is read can be written again to the same bytes, and what is
 * no item is counted as lost. */

#include <string.h>

#include "base/record-text.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *) data;
    struct record_reader reader;
    struct record_item item;
    char head[RECORD_TEXT_HEAD_MAX];
    size_t sum = 0;

    if (!record_reader_init(&reader, text, size)) {
        FUZZ_ASSERT(reader.lost == size && !record_reader_next(&reader, &item));
        return 0;
    }
    if (size > 0)
        sum = strlen(RECORD_TEXT_VERSION);
    while (record_reader_next(&reader, &item)) {
        size_t n = record_text_format(item.key, item.is_forgotten ? NULL : item.record, item.size, head);

        FUZZ_ASSERT(record_key_is_valid(item.key));
        FUZZ_ASSERT(memcmp(item.record - n, head, n) == 0);
        sum += n + (item.is_forgotten ? 0 : item.size);
    }
    FUZZ_ASSERT(sum + reader.lost == size);
    return 0;
}

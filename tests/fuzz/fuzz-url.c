/* SPDX-License-Identifier: MIT */

/* URLs of a Redis, durations, sizes, demands, names: text to value. What a value is written as is read as the same. */

#include <string.h>

#include "base/demand.h"
#include "base/duration.h"
#include "conf/redis-url.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_free_ char *text = strndup((const char *) data, size);
    char buffer[DEMANDS_TEXT_SIZE], duration[DURATION_TEXT_SIZE];
    struct redis_url url;
    struct demands demands, again;
    usec_t usec, twice;
    int r;

    r = redis_url_parse(text, &url);
    if (r == 0) {
        FUZZ_ASSERT(!url.unix_path || (!url.host && url.port == 0));
        FUZZ_ASSERT(url.host || !url.others);
        FUZZ_ASSERT(url.db <= REDIS_DB_MAX);
        redis_url_done(&url);
    } else {
        FUZZ_ASSERT(r < 0 || redis_url_explain(r));
    }
    if (demands_parse(text, &demands) == 0) {
        FUZZ_ASSERT(demands_parse(demands_format(&demands, buffer), &again) == 0);
        FUZZ_ASSERT(again.n == demands.n);
    }
    if (duration_parse(text, &usec) == 0)
        FUZZ_ASSERT(duration_parse(duration_format(usec, duration), &twice) == 0 && twice == usec);
    return 0;
}

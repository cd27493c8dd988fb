/* SPDX-License-Identifier: MIT */

/* INFO of any server: what is taken of it can be shown, and a refusal says why. */

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/redis/client/server-info.h"
#include "tests/fuzz/fuzz.h"

static void check(const char *text) {
    FUZZ_ASSERT(text_is_utf8(text) && !text_has_control(text, false));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_free_ char *info = strndup((const char *) data, size);
    enum redis_error error = REDIS_ERROR_RETRY;
    char text[SERVER_WHY_SIZE] = "";
    struct server_info server;

    server_info_read(&server, info);
    check(server.version);
    check(server.role);
    check(server.policy);
    FUZZ_ASSERT(server_info_is_usable(&server, &error, text, sizeof(text)) == (text[0] == '\0'));
    check(text);
    FUZZ_ASSERT(!server_info_is_too_old(info, text, sizeof(text)) || error == REDIS_ERROR_FATAL);
    for (enum server_warning i = 0; i < SERVER_WARNINGS; i++) {
        text[0] = '\0';
        FUZZ_ASSERT(server_info_warns(&server, i, text, sizeof(text)) == (text[0] != '\0'));
        check(text);
    }
    return 0;
}

/* SPDX-License-Identifier: MIT */

/* What a server sends instead of TLS, in pieces: tls_read() ends with a reason, or waits for more. */

#include <string.h>

#include "conf/settings.h"
#include "store/redis/client/tls.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct tls_context *context;
    struct tls_session *session = NULL;
    const char *pending;
    char plain[4096], why[256];
    size_t piece = size > 0 ? 1 + data[0] : 1;
    ssize_t n = 0;

    if (!context &&
        tls_context_load(&context, &(struct tls_settings){.is_used = true}, why, sizeof(why)) != 0)
        abort();
    if (tls_session_new(&session, context, "localhost") < 0)
        abort();
    FUZZ_ASSERT(tls_pending(session, &pending) > 0);
    tls_sent(session, tls_pending(session, &pending));
    for (size_t at = 1; at < size && n == 0; at += piece) {
        if (tls_feed(session, data + at, size - at < piece ? size - at : piece) < 0)
            abort();
        while ((n = tls_read(session, plain, sizeof(plain))) > 0)
            ;
    }
    if (n == 0 && tls_feed(session, NULL, 0) == 0) {
        n = tls_read(session, plain, sizeof(plain));
        FUZZ_ASSERT(n < 0 && tls_state(session) == TLS_STATE_OVER);
    }
    FUZZ_ASSERT(n != -EPROTO || strlen(tls_error(session)) > 0);
    tls_session_free(session);
    return 0;
}

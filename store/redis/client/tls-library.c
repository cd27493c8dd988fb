/* SPDX-License-Identifier: MIT */
#include "store/redis/client/tls-library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define LIBRARY                                                                                             \
    "libssl.so." STRING(OPENSSL_VERSION_MAJOR) /* needs libcrypto, where most of the functions are */

struct tls_library openssl;

int tls_library_load(char *why, size_t size) {
    static const struct {
        const char *name;
        void **function;
    } functions[] = {
#define X(name) {#name, (void **) &openssl.name},
        TLS_LIBRARY(X)
#undef X
    };
    static bool is_loaded;
    void *library;

    if (is_loaded)
        return 0;
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_NODELETE);
    if (!library) {
        (void) snprintf(why, size, "TLS needs " LIBRARY " (OpenSSL): %s", dlerror());
        return -ENOENT;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        *functions[i].function = dlsym(library, functions[i].name);
        if (!*functions[i].function) {
            (void) snprintf(why, size, "TLS needs %s of " LIBRARY ": upgrade OpenSSL", functions[i].name);
            return -ENOENT;
        }
    }
    is_loaded = true;
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "store/redis/client/secret.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "conf/hash.h"

const char *redis_secret_path(const char *option, const char *credential,
                              char path[static SECRET_PATH_SIZE]) {
    const char *credentials = getenv("CREDENTIALS_DIRECTORY");

    path[0] = '\0';
    if (option && *option)
        (void) snprintf(path, SECRET_PATH_SIZE, "%s", option);
    else if (credentials)
        (void) snprintf(path, SECRET_PATH_SIZE, "%s/%s", credentials, credential);
    if (!(option && *option) && access(path, F_OK) < 0)
        path[0] = '\0';
    return path;
}

void redis_secret_add_stamp(uint64_t *stamp, const char *path) {
    struct stat st;

    hash_add_text(stamp, "path", path);
    if (*path == '\0' || stat(path, &st) < 0)
        return;
    hash_add_number(stamp, "device", st.st_dev);
    hash_add_number(stamp, "inode", st.st_ino);
    hash_add_number(stamp, "size", (uint64_t) st.st_size);
    hash_add_number(stamp, "seconds", (uint64_t) st.st_mtim.tv_sec);
    hash_add_number(stamp, "nanoseconds", (uint64_t) st.st_mtim.tv_nsec);
}

/* Returns the number of bytes, at most size, or a negative errno. */
static ssize_t read_all(const char *path, char *buffer, size_t size) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    size_t used = 0;
    ssize_t n = 1;

    if (fd < 0)
        return -errno;
    while (used < size && n > 0) {
        n = read(fd, buffer + used, size - used);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            return -errno;
        else
            used += (size_t) n;
    }
    return (ssize_t) used;
}

/* NULL: the text is a password. */
static const char *explain(char *text, size_t n) {
    if (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    if (n > SECRET_MAX)
        return "is longer than 4096 bytes";
    if (n == 0)
        return "is empty";
    if (memchr(text, '\0', n))
        return "contains a NUL byte";
    return memchr(text, '\n', n) ? "has more than one line" : NULL;
}

int redis_secret_read(const char *option, const char *credential, char **ret, char *why, size_t size) {
    char path[SECRET_PATH_SIZE], *text;
    const char *wrong;
    ssize_t n;

    *ret = NULL;
    if (*redis_secret_path(option, credential, path) == '\0')
        return 0;
    text = calloc(1, SECRET_MAX + 3);
    if (!text)
        return -ENOMEM;
    n = read_all(path, text, SECRET_MAX + 2);
    wrong = n < 0 ? strerror((int) -n) : explain(text, (size_t) n);
    if (!wrong) {
        *ret = text;
        return 0;
    }
    (void) snprintf(why, size, "%s %s: %s", option && *option ? "password-file" : "credential", path, wrong);
    explicit_bzero(text, SECRET_MAX + 3);
    free(text);
    return SECRET_E_FILE;
}

char *redis_secret_free(char *secret) {
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
    return NULL;
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* For values that are owned by a local variable with cleanup and handed over in the last line. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _unused_ __attribute__((unused))
#define _printf_(a, b) __attribute__((format(printf, a, b)))

#define ELEMENTSOF(array) (sizeof(array) / sizeof((array)[0]))

/* Takes the value out of a pointer variable and leaves NULL there. */
#define steal_pointer(p)                 \
    ({                                   \
        __typeof__(*(p)) _stolen = *(p); \
        *(p) = NULL;                     \
        _stolen;                         \
    })

/* Takes the descriptor out of an int variable and leaves -1 there. */
static inline int steal_fd(int *fd) {
    int stolen = *fd;
    *fd = -1;
    return stolen;
}

/* Closes a descriptor if there is one; keeps errno; returns -1 for `fd = close_fd(fd)`. */
static inline int close_fd(int fd) {
    if (fd >= 0) {
        int saved = errno;
        (void) close(fd);
        errno = saved;
    }
    return -1;
}

static inline void close_fdp(int *fd) {
    *fd = close_fd(*fd);
}
static inline void freep(void *p) {
    free(*(void **) p);
}
static inline void fclosep(FILE **f) {
    if (*f)
        (void) fclose(*f);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(close_fdp)
#define _cleanup_fclose_ _cleanup_(fclosep)

/* Defines x_freep() for _cleanup_(x_freep) from `struct x *x_free(struct x *)`. */
#define DEFINE_CLEANUP(type, function)                   \
    static inline _unused_ void function##p(type **p) { \
        *p = function(*p);                               \
    }

/* SPDX-License-Identifier: MIT */
#pragma once

/* The users who act: those that a proxy names, and those who know the token. The latter get a session, a
 * random text in a cookie. */

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

#define USERS_SESSIONS_MAX 64
#define USERS_SESSION_SIZE 65 /* 256 random bits in hex */
#define USERS_SESSION_TIME (12 * 3600 * USEC_PER_SEC)
#define USERS_TOKEN_MIN 32    /* characters */
#define USERS_WRONG_MAX 5     /* wrong tokens in a minute, of all users together */

struct users {
    char token[256]; /* "": nobody can log in */
    struct user_session {
        char id[USERS_SESSION_SIZE]; /* "": free */
        usec_t until;                /* boottime */
    } sessions[USERS_SESSIONS_MAX];
    unsigned n_wrong;
    usec_t wrong_since; /* boottime */
};

enum {
    /* named answers of users_login() */
    USERS_E_WRONG = 1, /* not the token */
    USERS_E_LATER,     /* too many wrong tokens: this one was not checked */
};

/* Makes a session for a caller who knows the token; if there are too many, the oldest one ends. Returns 0,
 * USERS_E_*, or a negative errno. */
int users_login(struct users *u, const char *token, usec_t now, char session[static USERS_SESSION_SIZE]);
void users_logout(struct users *u, const char *session);
bool users_is_session(const struct users *u, const char *session, usec_t now);
/* Returns whether a name of a user is valid: 1 to 64 printable ASCII characters, no space at either end. */
bool users_is_name(const char *name);

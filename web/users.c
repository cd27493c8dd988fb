/* SPDX-License-Identifier: MIT */
#include "web/users.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define NAME_MAX_LENGTH 64
#define MINUTE (60 * USEC_PER_SEC)

/* Compares in a time that does not depend on the position of a difference. */
static bool is_equal(const char *a, size_t n_a, const char *b, size_t n_b) {
    unsigned char difference = n_a != n_b;

    for (size_t i = 0; i < n_a; i++)
        difference |= (unsigned char) (a[i] ^ b[n_b > 0 ? i % n_b : 0]);
    return difference == 0;
}

static struct user_session *find(const struct users *u, const char *session) {
    struct user_session *found = NULL;

    for (size_t i = 0; i < USERS_SESSIONS_MAX; i++) {
        const struct user_session *s = &u->sessions[i];

        if (s->id[0] && is_equal(session, strlen(session), s->id, strlen(s->id)))
            found = (struct user_session *) s;
    }
    return found;
}

/* Returns a free place, or the place of the session that ends first. */
static struct user_session *find_place(struct users *u) {
    struct user_session *place = &u->sessions[0];

    for (size_t i = 0; i < USERS_SESSIONS_MAX; i++) {
        if (!u->sessions[i].id[0])
            return &u->sessions[i];
        if (u->sessions[i].until < place->until)
            place = &u->sessions[i];
    }
    return place;
}

static bool is_token(const struct users *u, const char *token) {
    return u->token[0] && is_equal(token, strlen(token), u->token, strlen(u->token));
}

int users_login(struct users *u, const char *token, usec_t now, char session[static USERS_SESSION_SIZE]) {
    unsigned char bits[(USERS_SESSION_SIZE - 1) / 2];
    struct user_session *place;

    if (u->n_wrong > 0 && now - u->wrong_since >= MINUTE)
        u->n_wrong = 0;
    if (u->n_wrong >= USERS_WRONG_MAX)
        return USERS_E_LATER;
    if (!is_token(u, token)) {
        if (u->n_wrong++ == 0)
            u->wrong_since = now;
        return USERS_E_WRONG;
    }
    if (getrandom(bits, sizeof(bits), 0) != (ssize_t) sizeof(bits))
        return -EIO;
    place = find_place(u);
    for (size_t i = 0; i < sizeof(bits); i++)
        (void) snprintf(place->id + 2 * i, 3, "%02x", bits[i]);
    place->until = now + USERS_SESSION_TIME;
    memcpy(session, place->id, USERS_SESSION_SIZE);
    return 0;
}

void users_logout(struct users *u, const char *session) {
    struct user_session *s = find(u, session);

    if (s)
        *s = (struct user_session) {};
}

bool users_is_session(const struct users *u, const char *session, usec_t now) {
    const struct user_session *s = find(u, session);

    return s && now < s->until;
}

bool users_is_name(const char *name) {
    size_t n = strlen(name);

    for (size_t i = 0; i < n; i++)
        if (name[i] < ' ' || name[i] > '~')
            return false;
    return n > 0 && n <= NAME_MAX_LENGTH && name[0] != ' ' && name[n - 1] != ' ';
}

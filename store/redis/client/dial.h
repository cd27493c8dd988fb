/* SPDX-License-Identifier: MIT */
#pragma once

/* Connects to the server. An attempt reads the password and the certificates, resolves the name, and tries its
 * addresses in order: the next one after an error, or beside the others after a second. The first one that answers
 * wins. */

#include "base/timer.h"
#include "store/redis/client/connection.h"
#include "store/redis/client/moved.h"
#include "store/redis/client/resolve.h"

struct redis_dial_handler {
    /* A connection is up; it is the owner's now, with the owner's options. */
    void (*on_up)(struct redis_connection *c, void *userdata);
    /* No address can be used. text: valid during the call. */
    void (*on_down)(enum redis_error error, const char *text, void *userdata);
    /* A risk for an administrator to remove, which does not stop the attempt. */
    void (*on_warning)(const char *text, void *userdata);
    void *userdata;
};

struct redis_dial {
    sd_event *event;
    const struct redis_connection_options *options; /* of connections that are up; must outlive the dial */
    struct redis_dial_handler handler;
    struct redis_connection_options own; /* of connections that are not up */
    const char *credential;              /* of the unit, with the password; "redis-password" by default */
    struct tls_context *own_tls;         /* of the last attempt; NULL: none yet, plain, or another dial's */
    struct tls_context **tls;            /* own_tls, or that of the dial which shares it */
    uint64_t warned;                     /* stamp of the files of the last warning */
    usec_t expiry_silent; /* boottime before which no warning of the server's certificate follows */
    uint64_t stamp;       /* of the files and the user at the last attempt */
    char *password;       /* during an attempt */
    usec_t deadline;      /* of the attempt, boottime */
    struct redis_resolve *resolve;
    struct redis_addresses addresses;
    size_t next; /* address */
    struct redis_connection *tries[RESOLVE_ADDRESSES_MAX];
    char up[RESOLVE_ADDRESS_SIZE]; /* the address that won last */
    struct moved node;             /* target: another host of the url, or of a redirection; port 0: the url's first host */
    size_t n_failed;               /* hosts of the url, in order, that failed */
    struct timer timer;            /* the next address */
    struct defer defer;            /* reports a failure */
    enum redis_error error;
    char reasons[SOCKET_REASON_SIZE]; /* of the addresses that failed, "": none yet */
};

/* 0 or a negative errno; redis_dial_done() in any case. */
int redis_dial_init(struct redis_dial *dial, sd_event *event, const struct redis_connection_options *options,
                    const struct redis_dial_handler *handler);
void redis_dial_done(struct redis_dial *dial);
/* Uses the TLS context of another dial, which must outlive this one and has the same TLS settings. */
void redis_dial_share_tls(struct redis_dial *dial, struct redis_dial *other);
/* Begins an attempt; ends an earlier one. Calls the handler once, never from inside this call. */
void redis_dial_start(struct redis_dial *dial);
/* Begins another connection to the address that won, with the same deadline. 0 or a negative errno. */
int redis_dial_again(struct redis_dial *dial, struct redis_connection **ret);
/* Formats the address that won: "10.0.0.5:6379", "[::1]:6379", "/run/redis.sock". */
void redis_dial_format_address(const struct redis_dial *dial, char *buffer, size_t size);
/* Formats an attempt's target, with the host as the config or another node names it; "": not known yet. */
void redis_dial_format_target(const struct redis_dial *dial, char *buffer, size_t size);
/* Return whether there is a warning, and write its text: a certificate of the server ends soon, or others may read a
 * file. */
bool redis_dial_warns_of_expiry(const struct redis_dial *dial, const struct redis_connection *c, char *text,
                                size_t size);
bool redis_dial_warns_of_files(const struct redis_dial *dial, char *text, size_t size);
/* Selects the next host of the url. Returns true if it was the last, and the first one is next. */
bool redis_dial_next(struct redis_dial *dial);
/* Sends attempts to this node until redis_dial_next(). */
void redis_dial_redirect(struct redis_dial *dial, const struct moved *moved);
/* Returns whether another attempt would use the same files and user as the last one. */
bool redis_dial_is_current(const struct redis_dial *dial);
/* Ends the attempt without a call of the handler. */
void redis_dial_stop(struct redis_dial *dial);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Clients of berth-web, in a child process. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/clock.h"

#define WEB_LOAD_CONNECTIONS 1000
#define WEB_LOAD_SAMPLES 100000

enum web_load_kind {
    WEB_READERS,  /* streams that are read */
    WEB_STOPPERS, /* streams that nobody reads; one that berth-web closes is opened again */
    WEB_SLOW,     /* connections that send a byte of a request each second; opened again likewise */
    WEB_REQUESTS  /* requests for the overview at a fixed rate over kept connections */
};

struct web_load_counts { /* shared with the child */
    unsigned n_open;     /* connections; of streams: those that berth-web has answered */
    unsigned n_closed;   /* by berth-web, so far */
    size_t n_samples;
    double usec[WEB_LOAD_SAMPLES]; /* of an answer, from the time at which its request was due */
};

struct web_load {
    enum web_load_kind kind;
    unsigned n;    /* connections; at most WEB_LOAD_CONNECTIONS */
    unsigned rate; /* requests a second; of WEB_REQUESTS alone */
    bool is_elsewhere; /* clients of other machines: the child runs only when nobody else needs the processor */
    unsigned port; /* of 127.0.0.1; 0: path */
    const char *path, *pool; /* the unix socket; the pool of the streams */
    struct web_load_counts *counts;
    pid_t pid;
};

/* Starts the child and waits until all connections are open. */
void web_load_start(struct web_load *load);
/* Ends the child. Its counts are valid until web_load_done(). */
void web_load_end(struct web_load *load);
void web_load_done(struct web_load *load);

/* Asks for a path over a new connection to a port of 127.0.0.1. Returns the time until the answer is whole, in µs;
 * < 0: no answer with the status 200. */
double web_load_ask(unsigned port, const char *path);

/* SPDX-License-Identifier: MIT */
#pragma once

/* A folder of certificates, made with openssl(1), and a redis-server that speaks TLS with them. */

#include "tests/harness/redis/redis.h"

struct tls_place {
    char folder[64];
};

/* Makes the folder with ca.crt and ca.key, "CN=lab ca". 0 or a negative errno; tls_place_done() in any case.
 */
int tls_place_init(struct tls_place *p);
void tls_place_done(struct tls_place *p);
/* Makes another authority, NAME.crt and NAME.key. 0 or -EIO. */
int tls_place_make_ca(struct tls_place *p, const char *name, const char *common_name);
/* Makes NAME.crt and NAME.key, signed by an authority. san: such as "DNS:a,IP:127.0.0.1", or NULL. Valid
 * from and until so many days from now. 0 or -EIO. */
int tls_place_sign(struct tls_place *p, const char *ca, const char *name, const char *common_name,
                   const char *san, int from, int until);
/* Returns the path of a file in the place, in one of 8 buffers. */
char *tls_place_path(const struct tls_place *p, const char *file);

/* Returns a place with server.crt for 127.0.0.1, made once and removed when the process exits. */
const struct tls_place *tls_shared_place(void);

/* Starts a server with server.crt of the place on a free port besides its unix socket, and returns the port.
 * auth_clients: "no", "optional", "yes". 0: it does not start. */
unsigned tls_server_start(struct redis_server *s, const struct tls_place *p, const char *auth_clients);
/* Gives it another certificate. 0 or -EIO. */
int tls_server_use(struct redis_server *s, const struct tls_place *p, const char *name);

/* SPDX-License-Identifier: MIT */

/* Places of calls that stay open. Without a share for each user, one who may only look could take all of them, and
 * keep operators from watching. */

#include <unistd.h>

#include "base/socket.h"
#include "daemon/api/verbs-internal.h"

#define PLACES_MAX 64
#define PLACES_OF_USER 16
#define PLACES_RESERVED 8 /* for root and berthd's own user, who may take all */

static bool is_trusted(uid_t uid) {
    return uid == 0 || uid == geteuid();
}

int places_take(struct list *places, struct place *place, struct control_call *call, const char *what) {
    uid_t uid = control_call_peer(call)->uid;
    bool trusted = is_trusted(uid);
    unsigned n = 0, n_user = 0;
    int r;

    list_foreach(taken, places, struct place, link) {
        n++;
        n_user += taken->uid == uid;
    }
    if (n < PLACES_MAX - (trusted ? 0 : PLACES_RESERVED) && (trusted || n_user < PLACES_OF_USER)) {
        place->uid = uid;
        list_append(places, &place->link);
        return 0;
    }
    if (!trusted && n_user >= PLACES_OF_USER)
        r = verbs_error(call, "io.berth.TooMany", "%u clients of your user %s, as many as one user may have", n_user, what);
    else
        r = verbs_error(call, "io.berth.TooMany", "%u clients %s, as many as berthd serves", n, what);
    return r < 0 ? r : VERBS_ANSWERED;
}

/* SPDX-License-Identifier: MIT */

/* Redis: its data, and the scripts, each executed in one step. Names and order follow store/redis/lua. */

#define IN_EPOCH (D.epoch != 0 && D.replid == replid)
#ifdef M_NO_REPLID
#define MAY_GRANT (D.epoch != 0)
#else
#define MAY_GRANT IN_EPOCH
#endif

inline drop(it) {
    D.state[it] = 0;
    D.token[it] = 0;
    D.owner[it] = 0;
}

inline end_session(x) {
    for (q : 0 .. CLAIMS - 1) {
        if
        :: D.state[q] != 0 && SESSION(HOST_OF(q), D.owner[q]) == x -> drop(q)
        :: else
        fi
    }
    D.beat[x] = 0;
    D.conn[x] = 0;
    D.last[x] = 0;
}

inline give(it) {
    D.clock++;
#ifdef CLOCK
    if
    :: D.clock < time -> D.clock = time
    :: else
    fi;
    assert(D.clock > top); /* R7 */
    top = D.clock;
#endif
    D.state[it] = HELD;
    D.token[it] = D.clock;
    D.last[SESSION(HOST_OF(it), D.owner[it])] = D.clock;
#if ROLLBACKS > 0
    excused[it] = WINDOW;
#endif
}

/* Grants what is possible. */
inline settle() {
    if
    :: D.epoch != 0 && !D.grace ->
        u = 0;
        w = NONE;
        for (i : 0 .. CLAIMS - 1) {
            q = (i + prefer) % CLAIMS;
            if
            :: D.state[q] == HELD -> u++
            :: D.state[q] == WAITING && w == NONE -> w = q
            :: else
            fi
        }
        if
        :: u == 0 && w != NONE ->
            if
            :: MAY_GRANT ->
                give(w);
                P[HOST_OF(w)].epoch = D.epoch;
                P[HOST_OF(w)].claim = w;
                P[HOST_OF(w)].token = D.token[w];
                pushed = HOST_OF(w)
            :: else -> outside = true
            fi
        :: else
        fi
    :: else
    fi
}

inline expire(but) {
    for (i : 0 .. SESSIONS - 1) {
        if
        :: D.beat[i] != 0 && D.beat[i] <= A.dead && i != but ->
            if
            :: IN_EPOCH -> end_session(i)
            :: else -> outside = true
            fi
        :: else
        fi
    }
}

/* A grant of an earlier epoch, which its host does not name: it may be older than one that was lost. */
#define DOUBTFUL(c) (D.state[c] == HELD && D.token[c] <= D.began)

#define ABSENT (D.beat[s] == 0)
#ifdef M_CONNECTIONS
#define WRONG_CONNECTION false
#else
#define WRONG_CONNECTION (D.conn[s] != A.conn)
#endif

/* Redis's memory went back under one replication id. A heartbeat's script sees it by the last token and the last beat of the session, and by a
 * count that is older than one which its host received a lease ago; berthd detects that in the reply (answer_beat) and reports it in its hello. */
#ifdef M_SCORE
#define FORGOT_SCORE false
#else
#define FORGOT_SCORE (D.beat[s] < A.own)
#endif
#ifdef M_UNNOTICED
#define FORGOT_TOKEN false
#define FORGOT_COUNT false
#define PROVES false
#else
#define FORGOT_TOKEN (D.last[s] < A.last || FORGOT_SCORE)
#define FORGOT_COUNT (D.count <= A.dead)
#define PROVES (A.epoch == D.epoch && (D.count < A.own || A.proof || !ABSENT && FORGOT_SCORE) || D.clock < A.last && (A.epoch == D.epoch || !D.grace))
#endif

#ifndef GRACE
#define GRACE LEASE
#endif
#ifndef EXPIRY
#define EXPIRY LEASE
#endif

inline beat_session() {
    D.count++;
    D.beat[s] = D.count;
    r_count = D.count;
}

inline hear_clock() {
#if defined(CLOCK) && !defined(M_UNTAUGHT)
    if
    :: A.heard > D.clock -> D.clock = A.heard
    :: else
    fi
#else
    skip
#endif
}

/* Begins an epoch with the lowest name that no host has. */
inline new_epoch() {
#ifdef M_NUMBER
    if
    :: A.epoch > D.clock -> D.clock = A.epoch
    :: else
    fi;
    D.clock++;
    D.epoch = D.clock;
#else
    D.epoch = 0;
    for (w : 1 .. EPOCHS) {
        if
        :: D.epoch == 0 ->
            u = 0;
            for (q : 0 .. HOSTS - 1) {
                if
                :: H[q].epoch == w || H[q].a_epoch == w || P[q].epoch == w -> u = 1
#if LATES > 0
                :: late[q].verb != 0 && late[q].epoch == w -> u = 1
#endif
                :: else
                fi
            }
#if SAVES > 0
            if
            :: C.epoch == w -> u = 1
            :: else
            fi;
#endif
            if
            :: u == 0 -> D.epoch = w
            :: else
            fi
        :: else
        fi
    }
    assert(D.epoch != 0);
#endif
    D.replid = replid;
    D.grace = true;
    D.began = D.clock;
}

inline script_hello() {
    if
    :: !ABSENT && D.conn[s] > A.conn -> r_kind = STALE
    :: else ->
        if
        :: !IN_EPOCH || PROVES ->
            hear_clock();
            new_epoch()
        :: else ->
            if
            :: D.grace -> hear_clock()
            :: else
            fi;
            if
            :: A.epoch == D.epoch -> expire(s)
            :: else
            fi
        fi;
        if
        :: A.replaces -> end_session(SESSION(a_host, 1 - A.k))
        :: else
        fi;
        r_known = !ABSENT;
        D.conn[s] = A.conn;
        beat_session();
        r_grace = D.grace;
        settle()
    fi
}

/* Drops what Redis has of this session and the sync does not name. */
inline script_sync() {
    if
    :: A.epoch != D.epoch || !IN_EPOCH -> outside = true
    :: A.epoch == D.epoch && IN_EPOCH && ABSENT -> r_kind = GONE
    :: A.epoch == D.epoch && IN_EPOCH && !ABSENT && WRONG_CONNECTION -> r_kind = STALE
    :: else ->
        for (q : 0 .. CLAIMS - 1) {
            if
            :: HOST_OF(q) == a_host && A.state != 0 && q == A.claim ->
                if
                :: A.state == HELD ->
                    D.state[q] = HELD;
                    D.token[q] = A.token;
                    D.owner[q] = A.k
                :: A.state == WAITING && (D.state[q] == 0 || DOUBTFUL(q)) ->
                    D.state[q] = WAITING;
                    D.token[q] = 0;
                    D.owner[q] = A.k
                :: else -> D.owner[q] = A.k
                fi
#ifndef M_SYNC_KEEPS
            :: HOST_OF(q) == a_host && !(A.state != 0 && q == A.claim) && D.state[q] != 0 && D.owner[q] == A.k -> drop(q)
#endif
            :: else
            fi
        }
        if
        :: D.grace -> hear_clock()
        :: else
        fi;
        settle()
    fi
}

inline forget_epoch() {
    D.epoch = 0; /* nothing is granted before a hello */
    outside = true
}

inline script_beat() {
    if
#ifndef M_ANY_EPOCH
    :: A.epoch != D.epoch -> outside = true
#endif
    :: else ->
        if
        :: ABSENT -> r_kind = GONE
        :: !ABSENT && WRONG_CONNECTION -> r_kind = STALE
        :: !ABSENT && !WRONG_CONNECTION && FORGOT_TOKEN -> forget_epoch()
        :: else ->
            beat_session();
            if
            :: FORGOT_COUNT -> forget_epoch()
            :: else ->
                if
                :: D.grace -> hear_clock()
                :: else
                fi;
                if
                :: D.grace && A.known >= GRACE ->
                    if
                    :: IN_EPOCH -> D.grace = false
                    :: else -> outside = true
                    fi
                :: else
                fi;
                expire(s);
                settle()
            fi
        fi
    fi
}

inline script_claim() {
    if
    :: A.epoch != D.epoch -> outside = true
    :: A.epoch == D.epoch && ABSENT -> r_kind = GONE
    :: A.epoch == D.epoch && !ABSENT && WRONG_CONNECTION -> r_kind = STALE
    :: else ->
        if
        :: DOUBTFUL(A.claim) -> drop(A.claim)
        :: else
        fi;
        if
        :: D.state[A.claim] != 0 -> D.owner[A.claim] = A.k
        :: else ->
            settle();
            u = 0;
            for (q : 0 .. CLAIMS - 1) {
                if
                :: D.state[q] != 0 -> u++
                :: else
                fi
            }
            if
            :: D.grace || u > 0 ->
                D.state[A.claim] = WAITING;
                D.owner[A.claim] = A.k
            :: !D.grace && u == 0 && MAY_GRANT ->
                D.owner[A.claim] = A.k;
                give(A.claim)
            :: else -> outside = true
            fi
        fi
    fi
}

inline script_release() {
    if
    :: A.epoch != D.epoch -> outside = true
    :: A.epoch == D.epoch && ABSENT -> r_kind = GONE
    :: A.epoch == D.epoch && !ABSENT && WRONG_CONNECTION -> r_kind = STALE
    :: else ->
        if
        :: D.state[A.claim] != 0 && D.owner[A.claim] == A.k -> drop(A.claim)
        :: else
        fi;
        settle();
        outside = false /* the release itself was done */
    fi
}

/* Carries out A of host h; the answer is in r_*. */
inline carry_out(me) {
    a_host = me;
    s = SESSION(me, A.k);
    r_kind = OK;
    r_count = 0;
    r_state = 0;
    r_token = 0;
    r_known = false;
    r_grace = false;
    outside = false;
    pushed = NONE;
    if
    :: A.verb == HELLO -> script_hello()
    :: A.verb == SYNC -> script_sync()
    :: A.verb == BEAT -> script_beat()
    :: A.verb == CLAIM -> script_claim()
    :: A.verb == RELEASE -> script_release()
    fi;
    if
    :: outside -> r_kind = EPOCH
    :: else
    fi;
    r_epoch = D.epoch;
    r_last = D.last[s];
    r_clock = D.clock;
#ifdef CLOCK
    if
    :: A.verb == HELLO && r_clock < time -> r_clock = time
    :: else
    fi;
#endif
    if
    :: r_kind == OK && A.claim != NONE ->
        r_state = D.state[A.claim];
        r_token = D.token[A.claim]
    :: else
    fi;
    if
    :: A.verb == BEAT -> /* how many claims it has */
        r_token = 0;
        for (q : 0 .. CLAIMS - 1) {
            if
            :: D.state[q] != 0 && SESSION(HOST_OF(q), D.owner[q]) == s -> r_token++
            :: else
            fi
        }
    :: else
    fi
}

/* SPDX-License-Identifier: MIT */

/* A host: its berthd (store/redis), and the process that its guard watches. */

#define EXPIRED(h) (H[h].armed && H[h].lease >= LEASE)
#define CLAIM_OF(h) ((h) * RUNS + H[h].claim)
#define HAS_CLAIM(h) (H[h].claim < RUNS)
#ifdef CLOCK
#define CAN_COUNT (is_calm || D.count < COUNTS && ticks < TICKS)
#else
#define CAN_COUNT (is_calm || D.count < COUNTS)
#endif

/* At no instant do processes of more than the limit's permits run (R1). */
inline start(me) {
    H[me].state = RUNS_NOW;
    for (q : 0 .. HOSTS - 1) {
        if
        :: q != me && H[q].state == RUNS_NOW ->
#if ROLLBACKS > 0
            assert(excused[CLAIM_OF(me)] || excused[CLAIM_OF(q)])
#else
            assert(false)
#endif
        :: else
        fi
    }
}

inline grant_heard(me, number) {
    H[me].token = number;
    if
    :: H[me].armed && H[me].lease < LEASE -> start(me)
    :: else -> H[me].state = UNTOLD
    fi
}

inline forget_answer(me) {
    H[me].verb = 0;
    H[me].age = 0;
    H[me].a_kind = 0;
    H[me].a_epoch = 0;
    H[me].a_count = 0;
    H[me].a_last = 0;
#ifdef CLOCK
    H[me].a_clock = 0;
#endif
    H[me].a_state = 0;
    H[me].a_token = 0;
    H[me].a_known = false;
    H[me].a_grace = false
}

inline forget_push(me) {
    P[me].epoch = 0;
    P[me].claim = 0;
    P[me].token = 0
}

/* The arguments of a call, as they are now. */
inline prepare(me, which) {
    A.verb = which;
    A.k = H[me].k;
    A.conn = H[me].conn;
    A.epoch = H[me].epoch;
    A.known = H[me].known;
    A.own = H[me].own;
    A.last = H[me].last;
#ifdef CLOCK
    A.heard = H[me].heard;
#endif
    A.proof = H[me].proof;
    A.dead = H[me].dead;
    A.replaces = H[me].replaces;
    A.claim = NONE;
    A.state = 0;
    A.token = 0;
    if
    :: which != RELEASE && HAS_CLAIM(me) && H[me].state >= ASKED && H[me].state <= UNTOLD ->
        A.claim = CLAIM_OF(me);
        A.state = WAITING
    :: which != RELEASE && HAS_CLAIM(me) && H[me].state == RUNS_NOW ->
        A.claim = CLAIM_OF(me);
        A.state = HELD;
        A.token = H[me].token
    :: which == RELEASE -> A.claim = CLAIM_OF(me)
    :: else
    fi
}

/* Doubts a grant that was not started. Redis reports whether the claim is still held. */
inline doubt_untold(me) {
    if
    :: H[me].state == UNTOLD -> H[me].state = WAITS
    :: else
    fi
}

#define CALLS(h, v) \
    (H[h].verb == 0 && !EXPIRED(h) && \
     ((v) == HELLO && H[h].phase == AWAY && CAN_COUNT || \
      (v) == SYNC && H[h].phase == SYNCING && CAN_COUNT || \
      (v) == BEAT && H[h].phase == LIVE && CAN_COUNT && (H[h].lease > 0 || !H[h].armed) || \
      (v) == CLAIM && H[h].phase == LIVE && H[h].armed && HAS_CLAIM(h) && (H[h].state == NO_CLAIM || H[h].state == ASKED) || \
      (v) == RELEASE && H[h].phase == LIVE && H[h].armed && H[h].state == OVER))

#define CAN_CALL(h) (CALLS(h, HELLO) || CALLS(h, SYNC) || CALLS(h, BEAT) || CALLS(h, CLAIM) || CALLS(h, RELEASE))

/* How a call changes its host before the answer is there. */
inline begin_call(me, which) {
    if
    :: which == CLAIM -> H[me].state = ASKED
    :: which == SYNC -> doubt_untold(me)
    :: else
    fi;
    prepare(me, which)
}

inline call(me, which) {
    begin_call(me, which);
    carry_out(me);
    H[me].verb = which;
    H[me].age = 0;
    H[me].a_kind = r_kind;
    if
    :: r_kind == OK ->
        H[me].a_count = r_count;
        H[me].a_last = r_last;
#ifdef CLOCK
        H[me].a_clock = r_clock;
#endif
        if
        :: which == HELLO ->
            H[me].a_epoch = r_epoch;
            H[me].a_known = r_known;
            H[me].a_grace = r_grace
        :: which == SYNC || which == CLAIM ->
            H[me].a_state = r_state;
            H[me].a_token = r_token
        :: which == BEAT ->
            H[me].a_state = r_state;
            H[me].a_token = r_token
        :: else
        fi
    :: else
    fi
}

/* --- the session --- */

inline end_claim(me) {
#if ROLLBACKS > 0
    excused[CLAIM_OF(me)] = false;
#endif
    H[me].state = NO_CLAIM;
    H[me].token = 0;
    H[me].claim++
}

inline forget_marks(me) {
    H[me].mark = 0;
    H[me].mark_age = 0;
    H[me].dead = 0
}

/* The deadline has passed. What the host held is over. What waits keeps its place in a new session. */
inline session_lost(me) {
    forget_marks(me);
    forget_answer(me);
    forget_push(me);
    if
    :: H[me].state == RUNS_NOW || H[me].state == KILLED || H[me].state == OVER -> end_claim(me)
    :: H[me].state == UNTOLD -> H[me].state = WAITS
    :: else
    fi;
    H[me].armed = false;
    H[me].proof = false;
    H[me].lease = 0;
    H[me].own = 0;
    H[me].last = 0;
    H[me].restored = false;
#if ROLLBACKS > 0
    lost[me] = 0;
#endif
    if
    :: H[me].second ->
        H[me].phase = OFF;
        H[me].epoch = 0;
        H[me].known = 0;
        H[me].mark = 0;
        H[me].mark_age = 0;
        H[me].dead = 0;
#ifdef CLOCK
        H[me].heard = 0;
#endif
        H[me].conn = 0;
        H[me].state = NO_CLAIM;
        H[me].token = 0;
        H[me].claim = RUNS;
        H[me].replaces = false
    :: else ->
        H[me].phase = AWAY;
        H[me].second = true;
        H[me].k = 1;
        H[me].replaces = true;
        H[me].conn = 1
    fi
}

/* --- answers --- */

/* Each message that Redis sent before its data went back has arrived, or never will. */
inline heard_lost(me, how) {
#if ROLLBACKS > 0
    if
    :: lost[me] == how -> lost[me] = BEHIND
    :: else
    fi
#else
    skip
#endif
}

/* Redis and this host know the same. */
inline caught_up(me) {
#if ROLLBACKS > 0
    if
    :: lost[me] == BEHIND -> lost[me] = NOTHING
    :: else
    fi
#else
    skip
#endif
}

inline hear_count(me) {
    H[me].own = H[me].a_count;
    if
    :: H[me].mark == 0 ->
        H[me].mark = H[me].a_count;
        H[me].mark_age = 0
    :: else
    fi
}

inline hear_numbers(me) {
#ifdef CLOCK
    if
    :: H[me].a_clock + STEP * H[me].age > H[me].heard -> H[me].heard = H[me].a_clock + STEP * H[me].age
    :: else
    fi
#else
    skip
#endif
}

inline hear_last(me) {
    if
    :: H[me].a_last > H[me].last -> H[me].last = H[me].a_last
    :: else
    fi
}

inline hear_claim(me) {
    if
    :: H[me].state == ASKED || H[me].state == WAITS ->
        if
        :: H[me].a_state == HELD -> grant_heard(me, H[me].a_token)
        :: H[me].a_state == WAITING -> H[me].state = WAITS
        :: else -> H[me].state = NO_CLAIM
        fi
    :: else
    fi
}

inline answer_hello(me) {
    if
    :: H[me].a_epoch != H[me].epoch ->
        H[me].epoch = H[me].a_epoch;
        H[me].known = 0;
        H[me].mark = 0;
        H[me].mark_age = 0;
        H[me].dead = 0;
        H[me].last = H[me].a_last
    :: else -> hear_last(me)
    fi;
    hear_count(me);
    hear_numbers(me);
    if
    :: H[me].restored && !H[me].a_known && !H[me].a_grace && (H[me].state == RUNS_NOW || H[me].state == KILLED) ->
        session_lost(me) /* it was expired while berthd was away; its process is stopped before the next hello */
    :: else ->
        H[me].restored = false;
        H[me].proof = false;
        H[me].replaces = false;
        H[me].phase = SYNCING
    fi
}

inline answer_sync(me) {
    hear_last(me);
    hear_numbers(me);
    if
    :: H[me].state == OVER -> end_claim(me) /* it was not named: Redis has dropped it */
    :: else -> hear_claim(me)
    fi;
    H[me].phase = LIVE;
    caught_up(me)
}

/* Redis and the host differ: the host missed a push, or Redis lost something. */
#define MISSED(h) \
    (H[h].a_last > H[h].last || \
     (H[h].state == WAITS || H[h].state == RUNS_NOW) && H[h].a_state == 0 || H[h].state == NO_CLAIM && H[h].a_token > 0)

inline answer_beat_kept(me) {
    hear_count(me);
    hear_numbers(me);
#ifdef M_FROM_ANSWER
    H[me].lease = 0;
#else
    H[me].lease = H[me].age;
#endif
    H[me].armed = true;
    if
    :: H[me].state == UNTOLD ->
        if
        :: H[me].lease < LEASE -> start(me)
        :: else
        fi
    :: else
    fi;
    if
    :: MISSED(me) -> H[me].phase = AWAY
    :: else -> caught_up(me)
    fi
}

inline answer_beat(me) {
#ifdef M_UNNOTICED
    answer_beat_kept(me)
#else
    if
    :: H[me].a_count <= H[me].own ->
        H[me].proof = true;
        H[me].phase = AWAY
    :: else -> answer_beat_kept(me)
    fi
#endif
}

inline answer(me) {
    if
    :: H[me].a_kind == OK ->
        if
        :: H[me].verb == HELLO -> answer_hello(me)
        :: H[me].verb == SYNC -> answer_sync(me)
        :: H[me].verb == BEAT -> answer_beat(me)
        :: H[me].verb == CLAIM ->
            hear_numbers(me);
            hear_last(me);
            hear_claim(me)
        :: H[me].verb == RELEASE -> end_claim(me)
        fi
    :: H[me].a_kind == STALE ->
        H[me].conn++;
        H[me].phase = AWAY
    :: H[me].a_kind == GONE ->
        forget_marks(me);
        H[me].proof = H[me].armed; /* its deadline has not passed: no host can have expired it */
        H[me].phase = AWAY
    :: else -> H[me].phase = AWAY
    fi;
    heard_lost(me, ANSWERED);
    forget_answer(me)
}

/* A grant is pushed. One of another epoch is ignored. */
inline push(me) {
    heard_lost(me, PUSHED);
    if
    :: P[me].epoch == H[me].epoch && HAS_CLAIM(me) && P[me].claim == CLAIM_OF(me) ->
        if
        :: P[me].token > H[me].last -> H[me].last = P[me].token
        :: else
        fi;
#ifdef CLOCK
        if
        :: P[me].token > H[me].heard -> H[me].heard = P[me].token
        :: else
        fi;
#endif
        if
        :: H[me].state == ASKED || H[me].state == WAITS -> grant_heard(me, P[me].token)
        :: else
        fi
    :: else
    fi;
    forget_push(me)
}

/* --- what breaks it --- */

inline cut(me) {
    heard_lost(me, ANSWERED);
    heard_lost(me, PUSHED);
    forget_answer(me);
    forget_push(me);
    H[me].conn++;
    H[me].phase = AWAY
}

/* berthd dies; its guard goes on. Only the session's file remains of what berthd knew. */
inline crash(me) {
    heard_lost(me, ANSWERED);
    heard_lost(me, PUSHED);
    forget_answer(me);
    forget_push(me);
    H[me].phase = DOWN;
    H[me].armed = false;
    H[me].proof = false;
    H[me].epoch = 0;
    H[me].known = 0;
    H[me].own = 0;
    H[me].mark = 0;
    H[me].mark_age = 0;
    H[me].dead = 0;
    H[me].last = 0;
#ifdef CLOCK
    H[me].heard = 0;
#endif
    H[me].restored = true;
    doubt_untold(me);
    if
    :: H[me].state != RUNS_NOW && H[me].lease > 0 -> H[me].lease = 0
    :: else
    fi
}

inline restart_berthd(me) {
    H[me].phase = AWAY;
    H[me].conn++;
#ifdef CLOCK
    if
    :: H[me].state == RUNS_NOW -> H[me].heard = H[me].token
    :: else
    fi
#endif
}

#if LATES > 0
inline copy_args(from, to) {
    to.verb = from.verb;
    to.k = from.k;
    to.conn = from.conn;
    to.epoch = from.epoch;
    to.dead = from.dead;
    to.known = from.known;
    to.own = from.own;
    to.last = from.last;
#ifdef CLOCK
    to.heard = from.heard;
#endif
    to.proof = from.proof;
    to.replaces = from.replaces;
    to.claim = from.claim;
    to.state = from.state;
    to.token = from.token
}

inline forget_late(me) {
    A.verb = 0;
    A.k = 0;
    A.conn = 0;
    A.epoch = 0;
    A.dead = 0;
    A.known = 0;
    A.own = 0;
    A.last = 0;
#ifdef CLOCK
    A.heard = 0;
#endif
    A.proof = H[me].proof;
    A.replaces = 0;
    A.claim = 0;
    A.state = 0;
    A.token = 0;
    copy_args(A, late[me])
}
#endif

/* --- */

inline choose_prefer() {
    prefer = 0;
    if
    :: true
    :: D.state[0] == WAITING && D.state[CLAIMS - 1] == WAITING -> prefer = 1
    fi
}

inline choose_verb(me) {
    if
    :: CALLS(me, HELLO) -> verb = HELLO
    :: CALLS(me, SYNC) -> verb = SYNC
    :: CALLS(me, BEAT) -> verb = BEAT
    :: CALLS(me, CLAIM) -> verb = CLAIM
    :: CALLS(me, RELEASE) -> verb = RELEASE
    fi
}

inline choose_slow() {
    slow = 0;
#if DELAYS > 0
    if
    :: true
    :: used[DELAYED] < DELAYS -> slow = SLOW_ANSWER
    :: used[DELAYED] < DELAYS && (D.state[0] == WAITING || D.state[CLAIMS - 1] == WAITING) -> slow = SLOW_PUSH
    fi
#endif
}

/* The answer and the push of a call arrive, unless they are delayed. */
inline arrive(me) {
#if DELAYS > 0
    if
    :: slow == SLOW_ANSWER && H[me].a_kind == OK -> used[DELAYED]++
    :: else -> answer(me)
    fi;
    arrive_push()
#else
    answer(me);
    arrive_push()
#endif
}

inline arrive_push() {
    for (g : 0 .. HOSTS - 1) {
        if
        :: P[g].epoch != 0 && g == pushed ->
            if
            :: slow == SLOW_PUSH -> used[DELAYED]++
            :: slow != SLOW_PUSH && H[g].phase != DOWN && H[g].phase != OFF && !EXPIRED(g) -> push(g)
            :: else -> forget_push(g)
            fi
        :: else
        fi
    }
    pushed = NONE;
    slow = 0
}

proctype host(byte h) provided (CAN_COUNT && !is_calm) {
    do
    :: atomic { CAN_CALL(h) -> choose_verb(h); choose_prefer(); choose_slow(); d_step { printf("host %d: calls\n", h); call(h, verb); arrive(h); SHOW(h); verb = 0; prefer = 0 } }
#if DELAYS > 0
    :: d_step { H[h].verb != 0 && !EXPIRED(h) -> printf("host %d: hears\n", h); answer(h); SHOW(h) }
    :: d_step { P[h].epoch != 0 && H[h].phase != DOWN && !EXPIRED(h) -> printf("host %d: push\n", h); push(h); SHOW(h) }
    :: d_step { P[h].epoch != 0 -> forget_push(h); heard_lost(h, PUSHED) } /* it is lost */
#endif
    :: d_step { EXPIRED(h) && H[h].phase != DOWN && H[h].phase != OFF -> printf("host %d: loses its session\n", h); session_lost(h) }
    :: d_step { H[h].state == RUNS_NOW -> printf("host %d: process ends\n", h); H[h].state = OVER } /* the process ends */
    :: d_step { H[h].state == KILLED && !EXPIRED(h) && H[h].phase != DOWN -> printf("host %d: process ends\n", h); H[h].state = OVER } /* a restarted berthd finds it so */
#if CUTS > 0
    :: atomic { CAN_CALL(h) && used[CUT] < CUTS -> choose_verb(h); choose_prefer();
        d_step { used[CUT]++; printf("host %d: calls, the answer is lost\n", h); call(h, verb); arrive_push(); cut(h); verb = 0; prefer = 0 } }
    :: d_step { used[CUT] < CUTS && H[h].verb != 0 && !EXPIRED(h) -> used[CUT]++; printf("host %d: cut\n", h); cut(h) }
#endif
#if LATES > 0
    :: atomic { CAN_CALL(h) && used[WAS_LATE] < LATES && late[h].verb == 0 -> choose_verb(h);
        d_step { used[WAS_LATE]++; begin_call(h, verb); copy_args(A, late[h]); verb = 0; printf("host %d: cut\n", h); cut(h) } }
    :: atomic { late[h].verb != 0 && CAN_COUNT -> choose_prefer();
        d_step { printf("host %d: late\n", h); copy_args(late[h], A); carry_out(h); arrive_push(); forget_late(h); prefer = 0 } }
#endif
#if CRASHES > 0
    :: d_step { used[CRASHED] < CRASHES && H[h].phase != DOWN && H[h].phase != OFF && !EXPIRED(h) -> used[CRASHED]++; printf("host %d: crash\n", h); crash(h) }
    :: d_step { H[h].phase == DOWN -> printf("host %d: restart\n", h); restart_berthd(h) }
#endif
    od
}

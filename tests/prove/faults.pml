/* SPDX-License-Identifier: MIT */

/* Time and faults. */

#if SAVES > 0
#define C_COUNTS (used[SAVED] > 0 && (used[RESTORED] < RESTORES || used[ROLLED] < ROLLBACKS)) /* it can still come back */
#else
#define C_COUNTS false
#endif
#if SAVES > 0
#define IN_COPY(x) ((x) == C.replid || (x) == C_replid)
#else
#define IN_COPY(x) false
#endif

/* A copy that cannot come back any more is forgotten. */
inline forget_copy() {
#if SAVES > 0
    if
    :: used[SAVED] > 0 && !C_COUNTS ->
        C.epoch = 0;
        C.replid = 0;
        C.grace = 0;
        C.began = 0;
        C.clock = 0;
        C.count = 0;
        for (i : 0 .. SESSIONS - 1) {
            C.beat[i] = 0;
            C.conn[i] = 0;
            C.last[i] = 0
        }
        for (i : 0 .. CLAIMS - 1) {
            C.state[i] = 0;
            C.token[i] = 0;
            C.owner[i] = 0
        }
        C_replid = 0
    :: else
    fi
#else
    skip
#endif
}

#ifdef CLOCK
#define KEEP_AGES true
#else
#define KEEP_AGES false
#endif

/* One tick passes for all hosts. At its host's deadline the guard has killed the process, whatever berthd
 * does (R8). */
inline tick() {
#ifdef CLOCK
    time = time + STEP;
    ticks++;
#endif
    for (i : 0 .. HOSTS - 1) {
#ifdef CLOCK
        if
        :: H[i].heard != 0 -> H[i].heard = H[i].heard + STEP
        :: else
        fi;
#endif
        if
        :: H[i].known < LEASE && H[i].epoch != 0 -> H[i].known++
        :: else
        fi;
        if
        :: H[i].mark != 0 ->
            H[i].mark_age++;
            if
            :: H[i].mark_age >= EXPIRY ->
                H[i].dead = H[i].mark;
                H[i].mark = 0;
                H[i].mark_age = 0
            :: else
            fi
        :: else
        fi;
        if
        :: (H[i].verb == BEAT || KEEP_AGES && H[i].verb != 0) && H[i].age < LEASE -> H[i].age++
        :: else
        fi;
        if
        :: H[i].lease < LEASE && (H[i].armed || H[i].state == RUNS_NOW) ->
            H[i].lease++;
            if
            :: H[i].lease >= LEASE && H[i].state == RUNS_NOW -> H[i].state = KILLED
            :: else
            fi
        :: else
        fi
    }
}

inline copy_data(from, to) {
    to.epoch = from.epoch;
    to.replid = from.replid;
    to.grace = from.grace;
    to.began = from.began;
    to.clock = from.clock;
    to.count = from.count;
    for (i : 0 .. SESSIONS - 1) {
        to.beat[i] = from.beat[i];
        to.conn[i] = from.conn[i];
        to.last[i] = from.last[i]
    }
    for (i : 0 .. CLAIMS - 1) {
        to.state[i] = from.state[i];
        to.token[i] = from.token[i];
        to.owner[i] = from.owner[i]
    }
}

inline wipe_data() {
    D.epoch = 0;
    D.replid = 0;
    D.grace = false;
    D.began = 0;
    D.clock = 0;
    D.count = 0;
    for (i : 0 .. SESSIONS - 1) {
        D.beat[i] = 0;
        D.conn[i] = 0;
        D.last[i] = 0
    }
    for (i : 0 .. CLAIMS - 1) {
        drop(i)
    }
}

/* A replication id that nothing has. */
inline new_replid() {
    w = 0;
    for (i : 1 .. 5) {
        if
        :: w == 0 && i != D.replid && i != replid && !IN_COPY(i) -> w = i
        :: else
        fi
    }
    replid = w
}

#if ROLLBACKS > 0
/* Before a host has caught up, it cannot know of the loss. */
inline judge_lost() {
    for (i : 0 .. HOSTS - 1) {
        if
        :: H[i].phase == OFF -> lost[i] = NOTHING
        :: H[i].phase != OFF && H[i].verb != 0 -> lost[i] = ANSWERED
        :: H[i].phase != OFF && H[i].verb == 0 && P[i].epoch != 0 -> lost[i] = PUSHED
        :: else -> lost[i] = BEHIND
        fi
    }
}
#endif

proctype faults() provided (!is_calm) {
    do
    :: d_step { CAN_COUNT -> printf("tick\n"); tick(); i = 0 }
#if SAVES > 0
    :: d_step { used[SAVED] < SAVES && used[RESTORED] == 0 && used[ROLLED] == 0 ->
        used[SAVED]++; printf("copy is saved\n");
        copy_data(D, C);
        C_replid = replid }
#endif
#if RESTORES > 0
    :: d_step { used[SAVED] > 0 && used[RESTORED] < RESTORES ->
        used[RESTORED]++; printf("redis comes back from the copy\n");
        copy_data(C, D);
        new_replid();
        forget_copy() }
#endif
#if ROLLBACKS > 0
    :: d_step { used[SAVED] > 0 && used[ROLLED] < ROLLBACKS ->
        used[ROLLED]++; printf("redis goes back to the copy\n");
        copy_data(C, D);
        replid = C_replid;
        judge_lost();
        forget_copy() }
#endif
#if RESTARTS > 0
    :: d_step { used[RESTARTED] < RESTARTS ->
        used[RESTARTED]++; printf("redis restarts\n");
        new_replid() }
#endif
#if SETBACKS > 0
    :: d_step { used[SETBACK] < SETBACKS -> used[SETBACK]++; printf("redis's wall clock is set back\n"); time = 1 }
#endif
#if WIPES > 0
    :: d_step { used[WIPED] < WIPES ->
        used[WIPED]++; printf("redis is wiped\n");
        wipe_data();
        new_replid() }
    :: d_step { used[WIPED] < WIPES ->
        used[WIPED]++; printf("redis is wiped\n");
        wipe_data();
        i = 0 }
#endif
    od
}

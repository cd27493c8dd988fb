/* SPDX-License-Identifier: MIT */

/* Each waiting claim is served. From any state, if nothing breaks any more and all hosts act at once, all
 * claims of hosts with a session are granted and released within CALM ticks. All of this is one step, after
 * which nothing happens. */

#define TURNS 8 /* of each host in a tick */

inline act(me) {
    if
    :: H[me].phase == DOWN -> restart_berthd(me)
    :: else
    fi;
    if
    :: EXPIRED(me) && H[me].phase != OFF -> session_lost(me)
    :: else
    fi;
    if
    :: H[me].verb != 0 -> answer(me)
    :: else
    fi;
    if
    :: P[me].epoch != 0 -> push(me)
    :: else
    fi;
    if
    :: H[me].state == KILLED || H[me].state == RUNS_NOW -> H[me].state = OVER
    :: else
    fi;
    if
    :: CAN_CALL(me) ->
        verb = (CALLS(me, HELLO) -> HELLO : (CALLS(me, SYNC) -> SYNC : (CALLS(me, BEAT) -> BEAT : (CALLS(me, CLAIM) -> CLAIM : RELEASE))));
        call(me, verb);
        arrive(me)
    :: else
    fi
}

proctype calm() {
    d_step {
        printf("from here on nothing breaks\n");
        is_calm = true;
        for (n : 1 .. CALM) {
            for (r : 1 .. TURNS) {
                for (b : 0 .. HOSTS - 1) {
                    act(b)
                }
            }
            tick();
            printf("tick %d\n", n);
            SHOW(0);
            SHOW(1)
        }
        for (b : 0 .. HOSTS - 1) {
            assert(H[b].phase == OFF || !HAS_CLAIM(b))
        }
        verb = 0;
        slow = 0
    }
}

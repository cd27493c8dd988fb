/* SPDX-License-Identifier: MIT */

/* The state of the model. */

#define SESSION(h, k) ((h) * 2 + (k))
#define HOST_OF(q) ((q) / RUNS)

/* A claim's state in Redis and in a sync. */
#define WAITING 1
#define HELD 2

typedef Data {
    byte epoch;          /* 0: none */
    byte replid;         /* as it was when the epoch began */
    bool grace;
    byte began;          /* the clock when the epoch began */
    byte clock;          /* the last token */
    byte count;          /* the beat clock */
    byte beat[SESSIONS]; /* 0: there is no such session */
    byte conn[SESSIONS];
    byte last[SESSIONS]; /* last token granted to it */
    byte state[CLAIMS];
    byte token[CLAIMS];
    byte owner[CLAIMS];     /* which of its host's two sessions it belongs to */
};

typedef Args {
    byte verb;     /* 0: no call */
    byte k;        /* session: of the host's two */
    byte conn;
    byte epoch;
    byte dead;
    byte known;
    byte own;      /* count that the session's last answered call got */
    byte last;     /* highest token of this session that its host received */
#ifdef CLOCK
    byte heard;    /* clock */
#endif
    bool proof;    /* hello: Redis has lost something of this epoch */
    bool replaces; /* hello: the host's other session ends */
    byte claim;
    byte state;    /* sync: of the claim */
    byte token;
};

#define HELLO 1
#define SYNC 2
#define BEAT 3
#define CLAIM 4
#define RELEASE 5

#define OK 1
#define EPOCH 2
#define GONE 3
#define STALE 4

Data D;            /* what Redis has */
byte replid;       /* who it is */
#if SAVES > 0
Data C;            /* the copy */
byte C_replid;     /* who it was */
#endif
#if LATES > 0
Args late[HOSTS];
#endif

/* A grant on its way to its host by a push; the channel belongs to a session. */
typedef Push {
    byte epoch;    /* 0: nothing */
    byte claim;
    byte token;
};
Push P[HOSTS];

#ifdef CLOCK
#define STEP 4     /* a tick of the wall clock: more than there are grants */
byte time;         /* Redis's wall clock */
byte ticks;
#endif
bool is_calm;      /* see calm.pml */

/* --- what the check alone knows --- */

#ifdef CLOCK
byte top;          /* the highest token that was ever given */
#endif


#define NOTHING 0
#define BEHIND 1      /* nothing of that has been answered yet */
#define ANSWERED 2    /* an answer of before is still on its way */
#define PUSHED 3      /* a push is */
#if ROLLBACKS > 0
byte lost[HOSTS];     /* Redis's memory went back, and this host has not seen an answer since */
bool excused[CLAIMS]; /* granted while that was so for any host */
#define WINDOW (lost[0] != 0 || lost[1] != 0 || lost[HOSTS - 1] != 0)
#else
#define WINDOW false
#endif

/* --- variables of one step: not part of a state --- */

hidden Args A;         /* the call */
hidden byte a_host;
hidden byte r_kind;    /* its answer */
hidden byte r_epoch;
hidden byte r_count;
hidden byte r_last;
hidden byte r_clock;
hidden byte r_state;
hidden byte r_token;
hidden byte r_known;
hidden byte r_grace;
hidden byte outside;   /* the script found Redis out of its epoch */
hidden byte s;
hidden byte i;
hidden byte q;
hidden byte w;
hidden byte u;
hidden byte b;
hidden byte n;
hidden byte r;
hidden byte g;
hidden byte pushed;   /* to which host this call has pushed a grant */
byte verb;             /* the call that was chosen */
byte slow;             /* what is delayed of this call */
#define SLOW_ANSWER 1
#define SLOW_PUSH 2
byte prefer;           /* whose claim goes first: queues are not modelled */

/* --- a host --- */

/* A connection: down (berthd is not there), away (hello is due), syncing (sync is due), live. */
#define DOWN 0
#define AWAY 1
#define SYNCING 2
#define LIVE 3
#define OFF 4      /* it has had both of its sessions */

/* The claim. Its process is alive while it is RUNS_NOW. */
#define NO_CLAIM 0
#define ASKED 1
#define WAITS 2
#define UNTOLD 3   /* granted, but no heartbeat was answered yet: nothing was started */
#define RUNS_NOW 4
#define KILLED 5   /* by its guard, at the deadline */
#define OVER 6     /* it is to be released */

typedef Host {
    byte phase;
    byte k;        /* which of its two sessions */
    bool second;   /* it has had the first */
    bool replaces; /* hello is to end the other one */
    byte conn;
    byte epoch;
    byte known;    /* ticks since it learned of this epoch */
    byte own;      /* what its last answered call counted, in this epoch and session */
    byte mark;     /* a count, and the ticks since it was received */
    byte mark_age;
    byte dead;     /* a count that was received a lease ago */
    byte last;     /* highest token granted to this session that it received, in this epoch */
#ifdef CLOCK
    byte heard;    /* highest token of anybody */
#endif
    bool armed;    /* a heartbeat of this session was answered */
    byte lease;    /* ticks since the last answered heartbeat was sent; LEASE: the deadline has passed */
    bool proof;    /* Redis lost something that it had answered: the next hello reports that */
    bool restored; /* berthd was restarted, and its hello was not answered yet */
    byte claim;    /* which of its claims */
    byte state;    /* of that */
    byte token;
    byte verb;     /* the call whose answer is due; 0: none */
    byte age;      /* ticks since it was sent */
    byte a_kind;
    byte a_epoch;
    byte a_count;
    byte a_last;
#ifdef CLOCK
    byte a_clock;
#endif
    byte a_state;
    byte a_token;
    bool a_known;
    bool a_grace;
};

Host H[HOSTS];


/* How often what broke. */
byte used[10];
#define SAVED 0
#define RESTORED 1
#define ROLLED 2
#define RESTARTED 3
#define WIPED 4
#define CUT 5
#define WAS_LATE 6
#define CRASHED 7
#define DELAYED 8
#define SETBACK 9

/* What a trail shows. */
#define SHOW(h) \
    printf("   host %d: call %d answer %d phase %d k %d conn %d epoch %d known %d own %d mark %d/%d dead %d last %d lease %d state %d token %d\n", h, \
        H[h].verb, H[h].a_kind, H[h].phase, H[h].k, H[h].conn, H[h].epoch, H[h].known, H[h].own, H[h].mark, H[h].mark_age, H[h].dead, \
        H[h].last, H[h].lease, H[h].state, H[h].token); \
    printf("   redis: epoch %d grace %d replid %d/%d count %d clock %d began %d beats %d %d %d %d claims %d:%d %d:%d\n", D.epoch, \
        D.grace, D.replid, replid, D.count, D.clock, D.began, D.beat[0], D.beat[1], D.beat[2], D.beat[3], D.state[0], D.token[0], \
        D.state[1], D.token[1])

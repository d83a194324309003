/* SPDX-License-Identifier: MIT */
/* The slot of a queue moves from one master of a cluster to another, key by key. No script works on
 * a part of the queue, also where the source dies in between, and its replica does not know of the
 * move. */
#define MASTERS 2
#include "scripts.pml"

#define SOURCE 0
#define TARGET 1

bool moving;   /* the source says so, and Redis looks at the declared keys before a script starts */
bool begun, finished, killed;
bool stored[JOBS], ended[JOBS];

/* Redis has no empty sets and hashes. */
#if JOBS == 1
#define ANY(m, set) at[m].set[0]
#define SIZE(m, set) at[m].set[0]
#else
#define ANY(m, set) (at[m].set[0] || at[m].set[1])
#define SIZE(m, set) (at[m].set[0] + at[m].set[1])
#endif

#ifdef NO_NONE /* KEYS[2], which never exists, is declared beside due */
#define MAY_START ANY(SOURCE, due)
#else
#define MAY_START false
#endif

#ifdef NO_HALF /* in a cluster a script refuses a queue of which a part is missing */
#define IS_WHOLE(m) true
#else
#define IS_WHOLE(m) (SIZE(m, due) + SIZE(m, running) == SIZE(m, jobs))
#endif

#define OWNER (finished -> TARGET : SOURCE)
#define RUNS_HERE (IS_WHOLE(OWNER) && (!moving || MAY_START))

/* A key that is not there, while the slot moves, is an error in the middle of a script. */
#define FAILS(set) (moving && !ANY(SOURCE, set))

#define IS_ONCE(j) \
    (at[0].due[j] + at[1].due[j] + at[0].running[j] + at[1].running[j] == (stored[j] && !ended[j]) && \
     at[0].jobs[j] + at[1].jobs[j] == (stored[j] && !ended[j]))

proctype use(byte j)
{
end:
    do
    :: d_step { RUNS_HERE && !stored[j] && !FAILS(jobs) ->
        at[OWNER].due[j] = true;
        at[OWNER].jobs[j] = true;
        stored[j] = true;
        assert(IS_ONCE(j))
    }
    /* a member of due without a record is removed */
    :: d_step { RUNS_HERE && at[OWNER].due[j] && !FAILS(jobs) ->
        at[OWNER].due[j] = false;
        if
        :: at[OWNER].jobs[j] && !FAILS(running) -> at[OWNER].running[j] = true
        :: else
        fi;
        assert(IS_ONCE(j))
    }
    :: d_step { RUNS_HERE && at[OWNER].running[j] && !FAILS(jobs) ->
        at[OWNER].running[j] = false;
        at[OWNER].jobs[j] = false;
        ended[j] = true;
        assert(IS_ONCE(j))
    }
    od
}

#if JOBS == 1
#define MOVE(set) at[TARGET].set[0] = at[SOURCE].set[0]; at[SOURCE].set[0] = false
#else
#define MOVE(set)                           \
    at[TARGET].set[0] = at[SOURCE].set[0];  \
    at[TARGET].set[1] = at[SOURCE].set[1];  \
    at[SOURCE].set[0] = false;              \
    at[SOURCE].set[1] = false
#endif

proctype cluster()
{
end:
    do
    :: d_step { !begun -> begun = true; moving = true }
    :: d_step { moving && ANY(SOURCE, due) -> assert(!ANY(TARGET, due)); MOVE(due) }
    :: d_step { moving && ANY(SOURCE, running) -> assert(!ANY(TARGET, running)); MOVE(running) }
    :: d_step { moving && ANY(SOURCE, jobs) -> assert(!ANY(TARGET, jobs)); MOVE(jobs) }
    :: d_step { moving && !ANY(SOURCE, due) && !ANY(SOURCE, running) && !ANY(SOURCE, jobs) ->
        moving = false;
        finished = true
    }
    /* where all keys have gone the queue looks new, and nobody can tell: README.md */
    :: d_step { moving && !killed && (ANY(SOURCE, due) || ANY(SOURCE, running) || ANY(SOURCE, jobs)) ->
        killed = true;
        moving = false
    }
    :: d_step { killed && !moving && !finished -> moving = true }
    od
}

init
{
    byte j;

    atomic {
        run cluster();
        j = 0;
        do
        :: j < JOBS ->
            run use(j);
            j++
        :: else -> break
        od
    }
}

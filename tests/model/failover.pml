/* SPDX-License-Identifier: MIT */
/* A master and its replica. The master is cut off, together with listener 0, and the replica is
 * promoted without its last writes; later listener 0 comes over. What was answered as sealed, since
 * there is a copy of it, is not lost; no job has two holders whose leases are sealed; no claim has
 * the token and the holder of another; and nobody settles what another holds. */
#define MASTERS 2
#include "scripts.pml"

#define PAIRS (2 * JOBS)
#define P (l * JOBS + j)

/* What a listener has of a job. */
#define NONE    0
#define QUEUED  1 /* claimed, and not known to be sealed */
#define RUNNING 2

byte hand[PAIRS], token[PAIRS];
bool lapsed[PAIRS]; /* its lease is over by its own clock, which is so before it is by Redis's */
bool copied[PAIRS]; /* there is a copy of its claim */

bool promoted; /* the replica is a master, and the old one is cut off from it; it has a replica */
bool healed;   /* listener 0 has come over */

/* What has happened, for the assertions. */
bool stored[JOBS], has_copy[JOBS]; /* the schedule, and what the replica has of it */
bool answered[JOBS], ended[JOBS];  /* the schedule was; the job is done */
byte last_token[PAIRS];

#ifndef MOST
#define MOST 6 /* no more tokens are given, so that there is an end */
#endif

#define HOME(l) (promoted && (l == 1 || healed))
#define IS_LIVE(l) (hand[l * JOBS + j] == RUNNING && !lapsed[l * JOBS + j])

/* ---- guards of listeners and producers ---- */
#ifdef NO_SEALED_SCHEDULE /* a schedule is answered when there is a copy */
#define IS_SAFE(j) true
#else
#define IS_SAFE(j) has_copy[j]
#endif

#ifdef NO_SEALED_CLAIM /* a handler begins when there is a copy of its claim */
#define IS_SEALED true
#else
#define IS_SEALED copied[P]
#endif

#ifdef NO_SEALED_RENEWAL /* a lease is renewed when there is a copy of that */
#define RENEWS_ALONE true
#else
#define RENEWS_ALONE false
#endif

inline check(j)
{
    assert(IS_ONE_SET(0, j) && IS_ONE_SET(1, j));
    assert(IS_LIVE(0) + IS_LIVE(1) <= 1);
    assert(!answered[j] || ended[j] || at[promoted].jobs[j])
}

inline let_go()
{
    hand[P] = NONE;
    lapsed[P] = false;
    copied[P] = false
}

proctype listen(byte l; byte j)
{
    byte result;
    byte holder;

end:
    do
    :: d_step { hand[P] == NONE && at[HOME(l)].due[j] && LAST_TOKEN(HOME(l)) < MOST ->
        claim(HOME(l), l, j, result);
        assert(!result || result > last_token[P]);
        if
        :: result ->
            token[P] = result;
            last_token[P] = result;
            hand[P] = QUEUED;
            copied[P] = HOME(l)
        :: else
        fi;
        result = 0;
        check(j)
    }
    :: d_step { hand[P] == QUEUED && !lapsed[P] && IS_SEALED ->
        hand[P] = RUNNING;
        check(j)
    }
    /* no copy in time: it is given back, to the master of that moment */
    :: d_step { hand[P] == QUEUED && !copied[P] ->
        holder = at[HOME(l)].holder[j];
        release(HOME(l), l, j, token[P], result);
        assert(!result || holder == l);
        result = 0;
        holder = 0;
        let_go();
        check(j)
    }
    :: d_step { hand[P] == QUEUED && lapsed[P] -> let_go() }
    :: d_step { hand[P] == RUNNING ->
        holder = at[HOME(l)].holder[j];
        done(HOME(l), l, j, token[P], result);
        assert(!result || holder == l);
        ended[j] = ended[j] || result;
        result = 0;
        holder = 0;
        let_go();
        check(j)
    }
    od
}

/* Does the holder of a job, by this master, believe that its lease lives? Then it renews it, here
 * if it is at home here. */
#define BELIEVES(m, l) (hand[l * JOBS + j] != NONE && !lapsed[l * JOBS + j] && \
                        token[l * JOBS + j] == at[m].token[j] && at[m].holder[j] == l && \
                        !(RENEWS_ALONE && m == 1 && HOME(l) == 0))
#define MAY_END(m) (at[m].running[j] && !BELIEVES(m, 0) && !BELIEVES(m, 1))

proctype world(byte j)
{
    bool ok;

end:
    do
    :: d_step { !stored[j] && !promoted ->
        schedule(0, j, ok);
        come[j] = true;
        stored[j] = true
    }
    :: d_step { stored[j] && !answered[j] && IS_SAFE(j) ->
        answered[j] = true;
        check(j)
    }
    :: d_step { hand[j] != NONE && !lapsed[j] -> lapsed[j] = true }
    :: d_step { hand[JOBS + j] != NONE && !lapsed[JOBS + j] -> lapsed[JOBS + j] = true }
    :: d_step { MAY_END(0) ->
        at[0].lease[j] = OVER;
        sweep(0, j);
        check(j)
    }
    :: d_step { MAY_END(1) && promoted ->
        at[1].lease[j] = OVER;
        sweep(1, j);
        check(j)
    }
    od
}

inline copy_job(j)
{
    at[1].due[j] = at[0].due[j];
    at[1].running[j] = at[0].running[j];
    at[1].dead[j] = at[0].dead[j];
    at[1].jobs[j] = at[0].jobs[j];
    at[1].token[j] = at[0].token[j];
    at[1].holder[j] = at[0].holder[j];
    at[1].try[j] = at[0].try[j];
    at[1].lease[j] = at[0].lease[j];
    has_copy[j] = stored[j];
    copied[j] = hand[j] != NONE;
    copied[JOBS + j] = hand[JOBS + j] != NONE
}

/* Both take longer than the clocks of the two machines differ, and than a microsecond a token. */
inline time_passes()
{
    clock_us = (at[0].seq > clock_us -> at[0].seq : clock_us);
    clock_us = (at[1].seq > clock_us -> at[1].seq : clock_us) + 1
}

active proctype replication()
{
end:
    do
    :: d_step { !promoted ->
        copy_job(0);
#if JOBS > 1
        copy_job(1);
#endif
        at[1].seq = at[0].seq
    }
    :: d_step { !promoted ->
        time_passes();
        promoted = true
    }
    :: d_step { promoted && !healed ->
        time_passes();
        healed = true
    }
    od
}

init
{
    byte l, j;

    atomic {
        j = 0;
        do
        :: j < JOBS ->
            at[0].holder[j] = NOBODY;
            at[1].holder[j] = NOBODY;
            run listen(0, j);
            run listen(1, j);
            run world(j);
            j++
        :: else -> break
        od
    }
}

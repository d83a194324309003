/* SPDX-License-Identifier: MIT */
/* What the scripts of src/lua do with the state of a job, each in one step, as Redis runs them.
 *
 * A guard is what a script asks before it changes anything. -DNO_x leaves one out, and run.sh
 * expects that the checker then finds a state that must not be. */

#ifndef JOBS
#define JOBS 2
#endif
#ifndef TRIES
#define TRIES 2
#endif
#define NOBODY 7

/* How old a lease is: it is to be renewed when it is OLD, and is no longer when it is OVER. */
#define NEW  0
#define OLD  1
#define OVER 2

/* One Redis: what src/lua/README.md draws, for each job. */
typedef redis {
    bool due[JOBS], running[JOBS], dead[JOBS]; /* the sets */
    bool jobs[JOBS];                       /* it has a record */
    byte token[JOBS], holder[JOBS];        /* its attempt */
    byte try[JOBS];
    byte lease[JOBS];                      /* of a job in run: how old its lease is */
    byte seq;                              /* the last token */
};

redis at[MASTERS];
bool come[JOBS]; /* the moment of the job has come, by Redis's clock */
byte clock_us;   /* Redis's clock, by which tokens go; in lease.pml it stands */

#define IS_ONE_SET(m, j) (at[m].due[j] + at[m].running[j] + at[m].dead[j] == at[m].jobs[j])

/* ---- guards ---- */
#ifdef NO_TAKEN /* schedule: the id is not there */
#define IS_FREE(m, j) true
#else
#define IS_FREE(m, j) (!at[m].jobs[j])
#endif

#ifdef NO_DUE /* claim: its moment has come */
#define IS_DUE(j) true
#else
#define IS_DUE(j) come[j]
#endif

#ifdef NO_WAITING /* claim: it is in due */
#define IS_WAITING(m, j) at[m].jobs[j]
#else
#define IS_WAITING(m, j) at[m].due[j]
#endif

#ifdef NO_RUNNING /* settle, renew: it is in run */
#define IS_RUNNING(m, j) at[m].jobs[j]
#else
#define IS_RUNNING(m, j) at[m].running[j]
#endif

#ifdef NO_TOKEN /* settle, renew: by this token */
#define IS_TOKEN(m, j, t) true
#else
#define IS_TOKEN(m, j, t) (at[m].token[j] == t)
#endif

#ifdef NO_HOLDER /* settle, renew: of this holder */
#define IS_HOLDER(m, j, l) true
#else
#define IS_HOLDER(m, j, l) (at[m].holder[j] == l)
#endif

#define IS_HELD(m, l, j, t) (IS_RUNNING(m, j) && IS_TOKEN(m, j, t) && IS_HOLDER(m, j, l))

#ifdef NO_LEASE /* sweep: the lease is over */
#define IS_OVER(m, j) true
#else
#define IS_OVER(m, j) (at[m].lease[j] == OVER)
#endif

#ifdef NO_BUSY /* cancel: nobody holds it */
#define IS_BUSY(m, j) false
#else
#define IS_BUSY(m, j) (at[m].running[j] && at[m].lease[j] != OVER)
#endif

#ifdef NO_GROWTH /* tokens go by a counter that may be lost, and not by the time as well */
#define LAST_TOKEN(m) at[m].seq
#else
#define LAST_TOKEN(m) (at[m].seq > clock_us -> at[m].seq : clock_us)
#endif

/* ---- scripts; ok: did it do it? ---- */
inline schedule(m, j, ok)
{
    ok = IS_FREE(m, j);
    if
    :: ok ->
        at[m].jobs[j] = true;
        at[m].due[j] = true;
        at[m].try[j] = 0
    :: else
    fi
}

/* got: the token; 0: the job was not given out */
inline claim(m, l, j, got)
{
    got = 0;
    if
    :: IS_WAITING(m, j) && IS_DUE(j) ->
        got = LAST_TOKEN(m) + 1;
        at[m].seq = got;
        at[m].token[j] = got;
        at[m].holder[j] = l;
        at[m].due[j] = false;
        at[m].running[j] = true;
        at[m].lease[j] = NEW;
        at[m].try[j]++
    :: else
    fi
}

inline forget(m, j)
{
    at[m].due[j] = false;
    at[m].running[j] = false;
    at[m].dead[j] = false;
    at[m].jobs[j] = false;
    at[m].holder[j] = NOBODY;
    at[m].token[j] = 0;
    at[m].lease[j] = NEW;
    at[m].try[j] = 0
}

inline done(m, l, j, t, ok)
{
    ok = IS_HELD(m, l, j, t);
    if
    :: ok -> forget(m, j)
    :: else
    fi
}

/* A run ends, and the job waits again; or it is dead, if its tries are used up. */
inline wait_again(m, j)
{
    at[m].running[j] = false;
    at[m].lease[j] = NEW;
    if
    :: at[m].try[j] >= TRIES -> at[m].dead[j] = true
    :: else -> at[m].due[j] = true
    fi
}

inline retry(m, l, j, t, ok)
{
    ok = IS_HELD(m, l, j, t);
    if
    :: ok -> wait_again(m, j)
    :: else
    fi
}

inline release(m, l, j, t, ok)
{
    ok = IS_HELD(m, l, j, t);
    if
    :: ok ->
        at[m].try[j]--;
        wait_again(m, j)
    :: else
    fi
}

inline renew(m, l, j, t, ok)
{
    ok = IS_HELD(m, l, j, t);
    if
    :: ok -> at[m].lease[j] = NEW
    :: else
    fi
}

inline sweep(m, j)
{
    if
    :: at[m].running[j] && IS_OVER(m, j) -> wait_again(m, j)
    :: else
    fi
}

inline cancel(m, j, ok)
{
    ok = at[m].jobs[j] && !IS_BUSY(m, j);
    if
    :: ok -> forget(m, j)
    :: else
    fi
}

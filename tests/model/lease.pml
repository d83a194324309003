/* SPDX-License-Identifier: MIT */
/* One Redis, listeners, and wires that break: at least once, one holder of a live lease, tokens that
 * grow, no job in two sets. */
#define MASTERS 1
#define LISTENERS 2
#ifndef BREAKS
#define BREAKS 1 /* how often a connection is lost */
#endif
#ifndef LIVES
#define LIVES 1 /* how often each job is scheduled */
#endif
#include "scripts.pml"

#define PAIRS (LISTENERS * JOBS)
#define P (l * JOBS + j)

/* What a listener asks of Redis about a job. One request of an id is on its way at a time. */
mtype = { NOTHING, CLAIM, DONE, RETRY, RENEW, RELEASE };

/* What a listener has of a job, in its hand. */
#define NONE     0
#define QUEUED   1 /* claimed, and its handler has not begun */
#define RUNNING  2
#define SETTLING 3

byte hand[PAIRS], token[PAIRS], age[PAIRS]; /* age: of the lease, by the listener's own clock */
mtype settles[PAIRS];                       /* how, while it is settling */

mtype asked[PAIRS];  /* on its way */
byte asked_token[PAIRS], asked_age[PAIRS]; /* the age: since it was sent */
bool ran[PAIRS];     /* Redis has run it, and the answer is on its way */
byte answer[PAIRS];

mtype late[PAIRS];   /* Redis reads it when its connection is long gone */
byte late_token[PAIRS];

byte unsettled[PAIRS]; /* the token of a run that could not be settled in time */
bool reclaims[LISTENERS];
byte strange[PAIRS];   /* a token that the reclaim has been shown, and is to return */
bool shown[LISTENERS]; /* the page was read */

/* What has happened, for the assertions. */
byte last_token[JOBS];
bool owed[JOBS]; /* its schedule was answered, and it is not done, cancelled or dead */
bool known_dead[JOBS];
byte lives[JOBS], breaks;

#define IS_LIVE(l, j) (hand[l * JOBS + j] == RUNNING && age[l * JOBS + j] != OVER)

/* Two listeners never run one job while both may believe that it is theirs. */
#define HAS_ONE_HOLDER(j) (IS_LIVE(0, j) + IS_LIVE(1, j) <= 1)

/* A job that is owed is in Redis. */
#define IS_THERE(j) (!owed[j] || at[0].jobs[j])

inline check(j)
{
    assert(IS_ONE_SET(0, j));
    assert(HAS_ONE_HOLDER(j));
    assert(IS_THERE(j))
}

inline send(what, by)
{
    asked[P] = what;
    asked_token[P] = by;
    asked_age[P] = NEW;
    ran[P] = false;
    answer[P] = 0
}

inline run_script(what, by, result)
{
    result = 0;
    if
    :: what == CLAIM ->
        claim(0, l, j, result);
        assert(!result || result > last_token[j]);
        last_token[j] = (result -> result : last_token[j])
    :: what == DONE ->
        done(0, l, j, by, result);
        owed[j] = owed[j] && !result
    :: what == RETRY -> retry(0, l, j, by, result)
    :: what == RENEW -> renew(0, l, j, by, result)
    :: what == RELEASE -> release(0, l, j, by, result)
    fi;
    assert(what == CLAIM || !result || by == last_token[j]);
    check(j)
}

inline let_go()
{
    hand[P] = NONE;
    token[P] = 0;
    age[P] = NEW;
    settles[P] = NOTHING
}

inline has_answer()
{
    if
    :: asked[P] == CLAIM && answer[P] ->
        hand[P] = QUEUED;
        token[P] = answer[P];
        age[P] = asked_age[P]
    :: asked[P] == RENEW && hand[P] != SETTLING && hand[P] != NONE ->
        if
        :: answer[P] && age[P] != OVER -> age[P] = asked_age[P]
        :: !answer[P] -> age[P] = OVER
        :: else
        fi
    :: (asked[P] == DONE || asked[P] == RETRY) -> let_go()
    :: else
    fi;
    asked[P] = NOTHING;
    asked_token[P] = 0;
    asked_age[P] = NEW;
    ran[P] = false;
    answer[P] = 0;
    check(j)
}

/* ---- guards of listeners ---- */
#ifdef NO_PAUSE /* while a listener reclaims, it claims nothing */
#define CLAIMS(l) true
#else
#define CLAIMS(l) (!reclaims[l])
#endif

#ifdef NO_CLOCK /* what has not begun is dropped when its lease is over by the listener's clock */
#define BEGINS true
#else
#define BEGINS (age[P] != OVER)
#endif

#ifdef SHORT /* for two jobs at once: fewer ways to go on with each */
#define RENEWS  false
#define RETRIES false
#else
#define RENEWS  true
#define RETRIES true
#endif

#ifdef NO_KNOWN /* what is in hand, or could not be settled, is not returned */
#define IS_KNOWN(t) false
#else
#define IS_KNOWN(t) (t == token[P] && hand[P] != NONE || t == unsettled[P])
#endif

/* What a listener does with one job. */
proctype listen(byte l; byte j)
{
    byte result;

end:
    do
    /* a hint, maybe a forged one; it claims nothing while it reclaims */
    :: atomic {
        hand[P] == NONE && asked[P] == NOTHING && at[0].due[j] && CLAIMS(l) ->
        send(CLAIM, 0)
    }
    :: d_step { asked[P] != NOTHING && !ran[P] ->
        run_script(asked[P], asked_token[P], answer[P]);
        ran[P] = true
    }
    :: d_step { asked[P] != NOTHING && ran[P] -> has_answer() }

    /* the handler begins, unless the lease is over by the clock of this machine */
    :: d_step { hand[P] == QUEUED && BEGINS ->
        hand[P] = RUNNING;
        assert(come[j]);
        assert(at[0].running[j] && at[0].holder[j] == l && at[0].token[j] == token[P]);
        check(j)
    }
    :: d_step { hand[P] == QUEUED && !(BEGINS) -> let_go() }

    /* it ends; the settle is repeated until it is answered, or the lease is over */
    :: d_step { hand[P] == RUNNING && asked[P] == NOTHING ->
        hand[P] = SETTLING;
        settles[P] = DONE;
        send(DONE, token[P])
    }
    :: d_step { hand[P] == RUNNING && asked[P] == NOTHING && RETRIES ->
        hand[P] = SETTLING;
        settles[P] = RETRY;
        send(RETRY, token[P])
    }
    :: d_step { hand[P] == SETTLING && asked[P] == NOTHING && age[P] != OVER && !reclaims[l] ->
        send(settles[P], token[P])
    }
    :: d_step { hand[P] == SETTLING && asked[P] == NOTHING && age[P] == OVER ->
        unsettled[P] = token[P];
        let_go()
    }

    :: d_step { (hand[P] == QUEUED || hand[P] == RUNNING) && age[P] == OLD &&
                asked[P] == NOTHING && RENEWS ->
        send(RENEW, token[P])
    }

    /* what was sent on a connection that is gone may still be read */
    :: d_step { late[P] != NOTHING ->
        run_script(late[P], late_token[P], result);
        result = 0;
        late[P] = NOTHING;
        late_token[P] = 0
    }

    /* what the page showed and is not known is given back */
    :: d_step { strange[P] ->
        release(0, l, j, strange[P], result);
        result = 0;
        strange[P] = 0;
        check(j)
    }
    od
}

/* The connection is lost, with what was on its way on it, and there is another one. */
inline lose(j_)
{
    j = j_;
    if
    :: asked[P] == NOTHING
    :: asked[P] != NOTHING && !ran[P] && late[P] == NOTHING ->
        late[P] = asked[P];
        late_token[P] = asked_token[P]
    :: asked[P] != NOTHING
    fi;
    asked[P] = NOTHING;
    asked_token[P] = 0;
    asked_age[P] = NEW;
    ran[P] = false;
    answer[P] = 0
}

inline page_shows(j_)
{
    j = j_;
    strange[P] =
        (at[0].running[j] && at[0].holder[j] == l && !(IS_KNOWN(at[0].token[j])) -> at[0].token[j] : 0)
}

#if JOBS == 1
#define EACH(what) what(0)
#define NONE_STRANGE (!strange[l * JOBS])
#else
#define EACH(what) what(0); what(1)
#define NONE_STRANGE (!strange[l * JOBS] && !strange[l * JOBS + 1])
#endif

proctype connect(byte l)
{
    byte j;

end:
    do
    :: atomic { breaks < BREAKS ->
        breaks++;
        EACH(lose);
        j = 0;
        reclaims[l] = true;
        shown[l] = false
    }
    :: d_step { reclaims[l] && !shown[l] ->
        EACH(page_shows);
        j = 0;
        shown[l] = true
    }
    :: d_step { reclaims[l] && shown[l] && NONE_STRANGE ->
        reclaims[l] = false;
        shown[l] = false
    }
    od
}

inline grow(what)
{
    what = (what == OVER -> OVER : what + 1)
}

/* Time passes, for one job: all clocks that count for it go on. */
#define CAN_AGE(l) (hand[l * JOBS + j] != NONE && age[l * JOBS + j] != OVER || \
                    asked[l * JOBS + j] != NOTHING && asked_age[l * JOBS + j] != OVER)

inline grow_old(l)
{
    if
    :: hand[l * JOBS + j] != NONE -> grow(age[l * JOBS + j])
    :: else
    fi;
    if
    :: asked[l * JOBS + j] != NOTHING -> grow(asked_age[l * JOBS + j])
    :: else
    fi
}

#ifdef WITH_CANCEL
#define CANCELS true
#else
#define CANCELS false
#endif

/* Redis, its clock, producers, and the sweeps of all listeners. */
proctype world(byte j)
{
    bool ok;

end:
    do
    :: d_step { lives[j] < LIVES && !at[0].jobs[j] ->
        lives[j]++;
        come[j] = false;
        schedule(0, j, ok);
        owed[j] = true;
        known_dead[j] = false;
        check(j)
    }
#ifdef NO_TAKEN
    :: d_step { at[0].running[j] ->
        schedule(0, j, ok);
        check(j)
    }
#endif
    :: d_step { at[0].due[j] && !come[j] -> come[j] = true }
    :: d_step { at[0].jobs[j] && CANCELS ->
        cancel(0, j, ok);
        owed[j] = owed[j] && !ok;
        check(j)
    }
    :: d_step { at[0].running[j] && at[0].lease[j] != OVER || CAN_AGE(0) || CAN_AGE(1) ->
        grow_old(0);
        grow_old(1);
        if
        :: at[0].running[j] -> grow(at[0].lease[j])
        :: else
        fi
    }
    :: d_step { at[0].running[j] && IS_OVER(0, j) ->
        sweep(0, j);
        check(j)
    }
    od
}

/* When nothing can happen any more: all that is owed has run until it was done, or is dead. */
proctype watch()
{
    byte j;

end:
    timeout;
    j = 0;
    do
    :: j < JOBS ->
        assert(!at[0].due[j] && !at[0].running[j]);
        assert(!owed[j] || at[0].dead[j]);
        j++
    :: else -> break
    od
}

init
{
    byte l, j;

    atomic {
        l = 0;
        do
        :: l < LISTENERS ->
            j = 0;
            do
            :: j < JOBS ->
                asked[P] = NOTHING;
                late[P] = NOTHING;
                settles[P] = NOTHING;
                run listen(l, j);
                j++
            :: else -> break
            od;
            run connect(l);
            l++
        :: else -> break
        od;
        j = 0;
        do
        :: j < JOBS ->
            at[0].holder[j] = NOBODY;
            run world(j);
            j++
        :: else -> break
        od;
        run watch()
    }
}

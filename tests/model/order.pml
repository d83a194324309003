/* SPDX-License-Identifier: MIT */
/* What a program asks about one id in one turn happens in that order, though Redis may refuse any
 * call (it does not know the script; the slot is elsewhere, or moves) or stop in the middle of one:
 * what it has not done goes again. */
#define MASTERS 1
#define JOBS 1
#include "scripts.pml"

#define REQUESTS 4 /* schedule, cancel, schedule, cancel */
#define IS_SCHEDULE(i) ((i) % 2 == 0)

bool sent[REQUESTS], over[REQUESTS]; /* on its way; answered */
byte refusals;
chan wire = [REQUESTS] of { byte };  /* one connection: what is sent first is run first */

#ifdef NO_ORDER /* one request of an id is on its way at a time */
#define IS_FIRST(i) true
#else
#define IS_FIRST(i) (i == 0 || over[i - 1])
#endif

/* Those that wait are sent by their age. */
proctype client()
{
    byte i;

end:
    do
    :: d_step { i < REQUESTS && !sent[i] && !over[i] && IS_FIRST(i) ->
        wire ! i;
        sent[i] = true;
        i = 0
    }
    :: d_step { i < REQUESTS && (sent[i] || over[i]) -> i++ }
    :: d_step { i > 0 && !over[REQUESTS - 1] -> i = 0 }
    od
}

proctype server()
{
    byte i;
    bool ok;

end:
    do
    :: d_step { nempty(wire) ->
        wire ? i;
        if
        :: IS_SCHEDULE(i) -> schedule(0, 0, ok)
        :: else -> cancel(0, 0, ok)
        fi;
        assert(ok); /* each finds what the one before it has left */
        over[i] = true;
        sent[i] = false;
        i = 0;
        ok = false
    }
    :: d_step { nempty(wire) && refusals < 3 ->
        wire ? i;
        sent[i] = false;
        refusals++;
        i = 0
    }
    od
}

proctype watch()
{
    timeout;
    assert(over[REQUESTS - 1] && !at[0].jobs[0])
}

init
{
    atomic {
        run client();
        run server();
        run watch()
    }
}

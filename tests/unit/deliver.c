/* SPDX-License-Identifier: MIT */
#include "base/task.h"
#include "support.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { WAIT_MS = 20000 };
static struct core core;
static struct deliver *d; /* in a block of its own, which some test frees early */
/* of what ran: a is a call, A its after() with the handle alive, *a without */
static char log_[256];

static void note(char c)
{
    size_t n = strlen(log_);
    cr_assert_lt(n, sizeof log_ - 1, "%s", log_);
    log_[n] = c;
}

struct entry {
    struct req req;
    char name;
    void (*act)(void); /* in the call */
    bool refused;
    int n_after;
};

static struct entry *of(struct req *r)
{
    return CONTAINER(r, struct entry, req);
}

static void called(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct entry *e = arg;

    cr_expect_eq(l, core.handle);
    cr_expect_eq(err, -e->name);
    cr_expect_eq(job, e->req.job);
    note(e->name);
    if (e->act) {
        e->act();
    }
}

static bool wanted(struct req *r)
{
    note('?');
    return !of(r)->refused;
}

static void after(struct req *r, bool alive)
{
    if (!alive) {
        note('*');
    }
    note(alive ? (char)(of(r)->name - 32) : of(r)->name);
    cr_expect_eq(++of(r)->n_after, 1);
    cr_expect(list_empty(&r->node), "it is in no list");
    free(of(r)); /* to see whether anybody looks at it again */
}

static struct entry *entry(char name, void (*act)(void))
{
    struct entry *e = calloc(1, sizeof *e);
    *e = (struct entry){.name = name, .act = act};
    e->req = (struct req){.kind = REQ_CALLBACK, .fn.callback = called, .arg = e, .after = after};
    e->req.job = (const struct lapse_job *)(void *)e;
    return e;
}

static void push(char name, void (*act)(void))
{
    deliver_push(d, &entry(name, act)->req, -name);
}

static void turns(int n)
{
    while (n--) {
        ev_run(core.loop, EVRUN_NOWAIT);
    }
}

static void start(void)
{
    core.loop = ev_loop_new(0);
    core.handle = (struct lapse *)(void *)&core;
    d = malloc(sizeof *d);
    memset(d, 0x5a, sizeof *d);
    deliver_init(d, &core);
}

static void end(void)
{
    free(d);
    ev_loop_destroy(core.loop);
}

TestSuite(deliver, .init = start, .fini = end);

/* ---- order and turns ---- */
Test(deliver, runs_in_order_and_only_from_the_loop)
{
    cr_expect(deliver_idle(d));
    push('a', NULL);
    push('b', NULL);
    push('c', NULL);
    cr_expect_not(deliver_idle(d));
    cr_expect_str_eq(log_, "", "nothing runs beneath the push");
    turns(9);
    cr_expect_str_eq(log_, "aAbBcC");
    cr_expect(deliver_idle(d));
    push('d', NULL);
    turns(9);
    cr_expect_str_eq(log_, "aAbBcCdD", "and again");
}

Test(deliver, runs_one_in_each_turn_of_the_loop)
{
    push('a', NULL);
    push('b', NULL);
    push('c', NULL);
    turns(1);
    cr_expect_str_eq(log_, "aA");
    turns(1);
    cr_expect_str_eq(log_, "aAbB");
    turns(1);
    cr_expect_str_eq(log_, "aAbBcC");
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)io;
    (void)events;
    note('.');
}

Test(deliver, lets_the_loop_poll_between_two)
{
    ev_io io;
    int fd = eventfd(1, EFD_NONBLOCK);

    ev_io_init(&io, on_readable, fd, EV_READ);
    ev_io_start(core.loop, &io);
    push('a', NULL);
    push('b', NULL);
    push('c', NULL);
    turns(4);
    cr_expect_str_eq(log_, "aA.bB.cC..",
                     "a socket that is never quiet neither waits nor is waited for");
    ev_io_stop(core.loop, &io);
    close(fd);
}

static void on_prepare(struct ev_loop *loop, ev_prepare *w, int events)
{
    (void)loop;
    (void)w;
    (void)events;
    note('|');
}

Test(deliver, keeps_the_loop_awake_while_it_has_something_and_no_longer)
{
    ev_prepare prepare;

    ev_prepare_init(&prepare, on_prepare);
    ev_prepare_start(core.loop, &prepare);
    ev_unref(core.loop);
    push('a', NULL);
    push('b', NULL);
    ev_run(core.loop, 0); /* ends when nothing is left to wait for */
    cr_expect_str_eq(log_, "|aA|bB");
    cr_expect_not(ev_is_active(&d->idle));
    ev_ref(core.loop);
    ev_prepare_stop(core.loop, &prepare);
}

static void push_x(void)
{
    push('x', NULL);
}

Test(deliver, what_a_callback_pushes_comes_last_and_in_a_later_turn)
{
    push('a', push_x);
    push('b', NULL);
    turns(1);
    cr_expect_str_eq(log_, "aA");
    turns(9);
    cr_expect_str_eq(log_, "aAbBxX");
    push('c', push_x);
    turns(1);
    cr_expect_str_eq(log_, "aAbBxXcC", "also when the queue was empty");
    turns(9);
    cr_expect_str_eq(log_, "aAbBxXcCxX");
}

static void after_pushes(struct req *r, bool alive)
{
    after(r, alive);
    push('y', NULL);
}

Test(deliver, what_after_pushes_runs_too)
{
    struct entry *e = entry('a', NULL);
    e->req.after = after_pushes;
    deliver_push(d, &e->req, -'a');
    turns(9);
    cr_expect_str_eq(log_, "aAyY");
}

Test(deliver, calls_nobody_where_nobody_wants_to_know)
{
    struct entry *e = entry('a', NULL);

    e->req.fn.callback = NULL;
    e->req.wanted = wanted;
    deliver_push(d, &e->req, -'a');
    push('b', NULL);
    turns(1);
    cr_expect_str_eq(log_, "A", "and asks nobody whether it is wanted");
    turns(1);
    cr_expect_str_eq(log_, "AbB", "it takes a turn all the same");
}

Test(deliver, asks_just_before_the_call_whether_it_is_wanted)
{
    struct entry *yes = entry('a', NULL);
    struct entry *no = entry('b', NULL);

    yes->req.wanted = no->req.wanted = wanted;
    deliver_push(d, &yes->req, -'a');
    deliver_push(d, &no->req, -'b');
    cr_expect_str_eq(log_, "");
    no->refused = true; /* it changed its mind meanwhile */
    turns(9);
    cr_expect_str_eq(log_, "?aA?B");
}

Test(deliver, an_entry_that_is_pushed_twice_is_a_bug, .signal = SIGABRT)
{
    struct entry *e = entry('a', NULL);
    deliver_push(d, &e->req, 0);
    deliver_push(d, &e->req, 0);
}

Test(deliver, an_entry_that_ended_is_not_pushed_again, .signal = SIGABRT)
{
    struct entry *e = entry('a', NULL);

    cr_assert_not(e->req.ended);
    deliver_push(d, &e->req, 0);
    cr_assert(e->req.ended);
    list_pop(&d->ended);
    deliver_push(d, &e->req, 0);
}

/* ---- a loop in a callback ---- */
static void nest(void)
{
    note('(');
    turns(3);
    note(')');
}

Test(deliver, a_loop_in_a_callback_runs_the_others)
{
    push('a', nest);
    push('b', NULL);
    push('c', NULL);
    turns(1);
    cr_expect_str_eq(log_, "a(bBcC)A");
    push('d', NULL);
    turns(2);
    cr_expect_str_eq(log_, "a(bBcC)AdD");
    cr_expect_null(d->frames);
}

Test(deliver, a_loop_in_a_loop_in_a_callback_is_fine)
{
    push('a', nest);
    push('b', nest);
    push('c', nest);
    push('d', NULL);
    turns(1);
    cr_expect_str_eq(log_, "a(b(c(dD)C)B)A");
    cr_expect_null(d->frames);
}

static bool x_ran(void *arg)
{
    (void)arg;
    return strchr(log_, 'X') != NULL;
}

static void push_and_wait(void)
{
    push('x', NULL);
    cr_expect(loop_until(core.loop, x_ran, NULL, WAIT_MS));
}

Test(deliver, a_callback_may_wait_for_another)
{
    push('a', push_and_wait);
    turns(1);
    cr_expect_str_eq(log_, "axXA");
}

/* ---- the end ---- */
static void close_it(void)
{
    note('!');
    deliver_close(d);
    free(d); /* as the handle is: nobody may look at it again */
    d = NULL;
}

Test(deliver, closed_frees_what_waits_uncalled)
{
    push('a', NULL);
    push('b', NULL);
    close_it();
    cr_expect_str_eq(log_, "!*a*b");
    turns(3);
    cr_expect_str_eq(log_, "!*a*b");
}

Test(deliver, closed_with_nothing_waiting_is_quiet)
{
    close_it();
    turns(3);
    cr_expect_str_eq(log_, "!");
}

Test(deliver, closed_in_a_callback_ends_quietly)
{
    push('a', close_it);
    push('b', NULL);
    turns(3);
    cr_expect_str_eq(log_, "a!*b*a");
}

Test(deliver, closed_in_the_last_callback_ends_quietly)
{
    push('a', close_it);
    turns(3);
    cr_expect_str_eq(log_, "a!*a");
}

static void nest_then_end(void)
{
    note('(');
    turns(3);
    note(')');
    cr_expect_null(d, "it was closed in there");
}

Test(deliver, closed_in_a_loop_in_a_callback_ends_all_turns_quietly)
{
    push('a', nest_then_end);
    push('b', nest_then_end);
    push('c', close_it);
    push('d', NULL);
    turns(3);
    cr_expect_str_eq(log_, "a(b(c!*d*c)*b)*a");
}

static void nest_close(void)
{
    note('(');
    turns(1);
    note(')');
    close_it();
}

Test(deliver, closed_after_a_loop_in_a_callback_ends_quietly)
{
    push('a', nest_close);
    push('b', NULL);
    push('c', NULL);
    turns(3);
    cr_expect_str_eq(log_, "a(bB)!*c*a");
}

static bool close_when_asked(struct req *r)
{
    (void)r;
    note('?');
    return false;
}

Test(deliver, what_waits_is_not_even_asked_when_it_is_closed)
{
    struct entry *e = entry('a', NULL);
    e->req.wanted = close_when_asked;
    deliver_push(d, &e->req, 0);
    close_it();
    cr_expect_str_eq(log_, "!*a");
}

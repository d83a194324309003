/* SPDX-License-Identifier: MIT */
#include "base/task.h"
#include "loop.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { WAIT_MS = 20000 };
static struct ev_loop *loop;
static struct task_queue *q; /* in a block of its own, which some tests free early */
/* of what ran: a is a run(), A its done() with the handle alive, *a without */
static char log_[256];

static void note(char c)
{
    size_t n = strlen(log_);
    cr_assert_lt(n, sizeof log_ - 1, "%s", log_);
    log_[n] = c;
}

struct entry {
    struct task task;
    char name;
    void (*act)(void); /* in run() */
    int n_done;
};

static struct entry *entry_of(struct task *t)
{
    return CONTAINER(t, struct entry, task);
}

static void entry_run(struct task *t)
{
    struct entry *e = entry_of(t);

    note(e->name);
    if (e->act) {
        e->act();
    }
}

static void entry_done(struct task *t, bool alive)
{
    struct entry *e = entry_of(t);

    if (!alive) {
        note('*');
    }
    note(alive ? (char)(e->name - 32) : e->name);
    cr_expect_eq(++e->n_done, 1);
    cr_expect(list_empty(&t->node), "it is in no list");
    free(e); /* to see whether anybody looks at it again */
}

static struct entry *entry(char name, void (*act)(void))
{
    struct entry *e = calloc(1, sizeof *e);

    *e = (struct entry){.name = name, .act = act};
    e->task = (struct task){.run = entry_run, .done = entry_done};
    return e;
}

static void push(char name, void (*act)(void))
{
    task_queue_push(q, &entry(name, act)->task);
}

static void turns(int n)
{
    while (n--) {
        ev_run(loop, EVRUN_NOWAIT);
    }
}

static void start(void)
{
    loop = ev_loop_new(0);
    q = malloc(sizeof *q);
    memset(q, 0x5a, sizeof *q);
    task_queue_init(q, loop);
}

static void end(void)
{
    free(q);
    ev_loop_destroy(loop);
}

TestSuite(task, .init = start, .fini = end);

/* ---- order and turns ---- */
Test(task, runs_in_order_and_only_from_the_loop)
{
    cr_expect(task_queue_empty(q));
    push('a', NULL);
    push('b', NULL);
    push('c', NULL);
    cr_expect_not(task_queue_empty(q));
    cr_expect_str_eq(log_, "", "nothing runs beneath the push");
    turns(9);
    cr_expect_str_eq(log_, "aAbBcC");
    cr_expect(task_queue_empty(q));
    push('d', NULL);
    turns(9);
    cr_expect_str_eq(log_, "aAbBcCdD", "and again");
}

Test(task, runs_one_in_each_turn_of_the_loop)
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

Test(task, lets_the_loop_poll_between_two)
{
    ev_io io;
    int fd = eventfd(1, EFD_NONBLOCK);

    ev_io_init(&io, on_readable, fd, EV_READ);
    ev_io_start(loop, &io);
    push('a', NULL);
    push('b', NULL);
    push('c', NULL);
    turns(4);
    cr_expect_str_eq(log_, "aA.bB.cC..",
                     "a socket that is never quiet neither waits nor is waited for");
    ev_io_stop(loop, &io);
    close(fd);
}

static void on_prepare(struct ev_loop *loop, ev_prepare *w, int events)
{
    (void)loop;
    (void)w;
    (void)events;
    note('|');
}

Test(task, keeps_the_loop_awake_while_it_has_something_and_no_longer)
{
    ev_prepare prepare;

    ev_prepare_init(&prepare, on_prepare);
    ev_prepare_start(loop, &prepare);
    ev_unref(loop);
    push('a', NULL);
    push('b', NULL);
    ev_run(loop, 0); /* ends when nothing is left to wait for */
    cr_expect_str_eq(log_, "|aA|bB");
    cr_expect_not(ev_is_active(&q->idle));
    ev_ref(loop);
    ev_prepare_stop(loop, &prepare);
}

static void push_x(void)
{
    push('x', NULL);
}

Test(task, what_a_callback_pushes_comes_last_and_in_a_later_turn)
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

static void done_pushes(struct task *t, bool alive)
{
    entry_done(t, alive);
    push('y', NULL);
}

Test(task, what_done_pushes_runs_too)
{
    struct entry *e = entry('a', NULL);
    e->task.done = done_pushes;
    task_queue_push(q, &e->task);
    turns(9);
    cr_expect_str_eq(log_, "aAyY");
}

Test(task, that_is_pushed_twice_is_a_bug, .signal = SIGABRT)
{
    struct entry *e = entry('a', NULL);
    task_queue_push(q, &e->task);
    task_queue_push(q, &e->task);
}

Test(task, that_has_run_is_not_pushed_again, .signal = SIGABRT)
{
    struct entry *e = entry('a', NULL);

    cr_assert_not(e->task.queued);
    task_queue_push(q, &e->task);
    cr_assert(e->task.queued);
    list_pop(&q->tasks);
    task_queue_push(q, &e->task);
}

/* ---- a loop in a callback ---- */
static void nest(void)
{
    note('(');
    turns(3);
    note(')');
}

Test(task, a_loop_in_a_callback_runs_the_others)
{
    push('a', nest);
    push('b', NULL);
    push('c', NULL);
    turns(1);
    cr_expect_str_eq(log_, "a(bBcC)A");
    push('d', NULL);
    turns(2);
    cr_expect_str_eq(log_, "a(bBcC)AdD");
    cr_expect_null(q->frames);
}

Test(task, a_loop_in_a_loop_in_a_callback_is_fine)
{
    push('a', nest);
    push('b', nest);
    push('c', nest);
    push('d', NULL);
    turns(1);
    cr_expect_str_eq(log_, "a(b(c(dD)C)B)A");
    cr_expect_null(q->frames);
}

static bool x_ran(void *arg)
{
    (void)arg;
    return strchr(log_, 'X') != NULL;
}

static void push_and_wait(void)
{
    push('x', NULL);
    cr_expect(loop_until(loop, x_ran, NULL, WAIT_MS));
}

Test(task, a_callback_may_wait_for_another)
{
    push('a', push_and_wait);
    turns(1);
    cr_expect_str_eq(log_, "axXA");
}

/* ---- the end ---- */
static void close_it(void)
{
    note('!');
    task_queue_close(q);
    free(q); /* as the handle is: it must not be read again */
    q = NULL;
}

Test(task, closed_frees_what_waits_uncalled)
{
    push('a', NULL);
    push('b', NULL);
    close_it();
    cr_expect_str_eq(log_, "!*a*b");
    turns(3);
    cr_expect_str_eq(log_, "!*a*b");
}

Test(task, closed_with_nothing_waiting_is_quiet)
{
    close_it();
    turns(3);
    cr_expect_str_eq(log_, "!");
}

Test(task, closed_in_a_callback_ends_quietly)
{
    push('a', close_it);
    push('b', NULL);
    turns(3);
    cr_expect_str_eq(log_, "a!*b*a");
}

Test(task, closed_in_the_last_callback_ends_quietly)
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
    cr_expect_null(q, "it was closed in there");
}

Test(task, closed_in_a_loop_in_a_callback_ends_all_turns_quietly)
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

Test(task, closed_after_a_loop_in_a_callback_ends_quietly)
{
    push('a', nest_close);
    push('b', NULL);
    push('c', NULL);
    turns(3);
    cr_expect_str_eq(log_, "a(bB)!*c*a");
}

/* ---- a task in what its run() frees ---- */
static void run_and_free(struct task *t)
{
    task_queue_close(q);
    free(t);
    note('f');
}

static void done_after_free(struct task *t, bool alive)
{
    (void)t; /* it is freed */
    cr_expect_not(alive);
    note('d');
}

Test(task, may_free_itself_together_with_the_handle)
{
    struct task *t = calloc(1, sizeof *t);

    *t = (struct task){.run = run_and_free, .done = done_after_free};
    task_queue_push(q, t);
    turns(1);
    cr_expect_str_eq(log_, "fd");
}

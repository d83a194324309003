/* SPDX-License-Identifier: MIT */
#include "redis/liveness.h"
#include "base/clock.h"

enum { SECOND_LOOK_MS = 20 };

void liveness_init(struct liveness *l, int64_t reply_ms)
{
    *l = (struct liveness){.reply_us = reply_ms * 1000};
}

void liveness_start(struct liveness *l)
{
    l->started_us = clock_us();
    l->heard_us = l->started_us;
    l->asked_us = 0;
    l->deadline_passed = false;
}

void liveness_heard(struct liveness *l)
{
    l->heard_us = clock_us();
    l->deadline_passed = false;
}

void liveness_moved(struct liveness *l)
{
    liveness_heard(l);
    l->moved_us = l->heard_us;
}

bool liveness_moving(const struct liveness *l)
{
    return l->moved_us && clock_us() - l->moved_us < l->reply_us;
}

void liveness_asked(struct liveness *l)
{
    l->asked_us = clock_us();
}

int64_t liveness_owed_since_us(const struct liveness *l)
{
    return l->asked_us > l->heard_us ? l->asked_us : 0;
}

int64_t liveness_ask_at_us(const struct liveness *l)
{
    return l->heard_us + l->reply_us / 2;
}

/* Half of reply_ms at the least, from when it was owed: what was asked after a long silence has
 * time too. */
int64_t liveness_deadline_us(const struct liveness *l, int64_t owed_since_us)
{
    int64_t silence_ends_us = l->heard_us + l->reply_us;
    int64_t answer_due_us = owed_since_us + l->reply_us / 2;
    int64_t later_us = silence_ends_us > answer_due_us ? silence_ends_us : answer_due_us;

    return later_us - SECOND_LOOK_MS * INT64_C(1000);
}

/* The second look is for when it was us who slept: the answer may lie in the socket. */
int64_t liveness_wait_ms(struct liveness *l, int64_t deadline_us)
{
    int64_t left_ms = (deadline_us - clock_us() + 999) / 1000;

    if (left_ms > 0) {
        l->deadline_passed = false;
        return left_ms;
    }

    if (!l->deadline_passed) {
        l->deadline_passed = true;
        return SECOND_LOOK_MS;
    }

    return 0;
}

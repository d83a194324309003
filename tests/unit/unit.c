/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct unit_clock unit_clock;
bool unit_no_entropy;

int clock_gettime(clockid_t id, struct timespec *t)
{
    long err = syscall(SYS_clock_gettime, id, t);
    int64_t us = t->tv_sec * 1000000 + t->tv_nsec / 1000;

    if (err) {
        return (int)err;
    }

    switch (id) {
    case CLOCK_MONOTONIC:
    case CLOCK_BOOTTIME:
        us = unit_clock.mono_at_us ? unit_clock.mono_at_us : us + unit_clock.mono_add_us;
        us += id == CLOCK_BOOTTIME ? unit_clock.slept_us : 0;
        break;
    case CLOCK_REALTIME: us += unit_clock.wall_add_us; break;
    default: return 0;
    }

    t->tv_sec = us / 1000000;
    t->tv_nsec = us % 1000000 * 1000 + t->tv_nsec % 1000;

    return 0;
}

/* libev's wall clock, as Debian builds it */
int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    int err = clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return err;
}

void unit_pass_us(int64_t us)
{
    unit_clock.mono_add_us += us;
    unit_clock.wall_add_us += us;
}

int getentropy(void *out, size_t len)
{
    return unit_no_entropy || syscall(SYS_getrandom, out, len, 0) != (long)len ? -1 : 0;
}

struct redisReply *unit_reply(const char *resp, size_t len)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    cr_assert_eq(redisReaderFeed(reader, resp, len), REDIS_OK);
    cr_assert_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
    cr_assert_not_null(reply, "not a whole reply: %s", resp);
    redisReaderFree(reader);
    return reply;
}

void *unit_copy(const void *bytes, size_t len)
{
    void *p = malloc(len);
    cr_assert_not_null(p);
    return memcpy(p, bytes, len);
}

uint64_t unit_random(uint64_t *state)
{
    /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

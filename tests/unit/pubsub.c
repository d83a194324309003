/* SPDX-License-Identifier: MIT */
/* What is pushed on a subscription, byte by byte as a server may send it. */
#include "redis/pubsub.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

static char heard[200];

static void hear(const char *what, struct span first, struct span second)
{
    snprintf(heard, sizeof heard, "%s %.*s %.*s", what, (int)first.len, first.at, (int)second.len,
             second.at);
}

static void on_confirmed(void *arg, struct channel *ch)
{
    (void)arg;
    hear("confirmed", span_of(ch->name), span_of(""));
}

static void on_message(void *arg, struct channel *ch, struct span text)
{
    (void)arg;
    hear("message", span_of(ch->name), text);
}

static void on_matched(void *arg, struct span channel, struct span text)
{
    (void)arg;
    hear("matched", channel, text);
}

static void on_left(void *arg, struct channel *ch)
{
    (void)arg;
    hear("left", span_of(ch->name), span_of(""));
}

/* A subscription that is not connected, to one channel. */
static struct subscription {
    struct context context;
    struct endpoint endpoint;
    struct pubsub pubsub;
    struct channel channel;
} s;

static void start(void)
{
    static const struct pubsub_events events = {
        .confirmed = on_confirmed, .message = on_message, .matched = on_matched, .left = on_left};

    s.context.loop = ev_loop_new(0);
    endpoint_init(&s.endpoint, &s.context, &s.endpoint.address);
    pubsub_init(&s.pubsub, &s.endpoint, CONN_SUBSCRIPTION, "pattern", &events, NULL);
    pubsub_add(&s.pubsub, &s.channel, "c", NULL);
}

static void end(void)
{
    pubsub_close(&s.pubsub);
    ev_loop_destroy(s.context.loop);
}

TestSuite(pubsub, .init = start, .fini = end);

static void push(const char *frame, size_t len, const char *expected)
{
    struct redisReply *reply = unit_reply(frame, len);

    *heard = '\0';
    s.pubsub.conn.events->pushed(s.pubsub.conn.arg, reply);
    cr_expect_str_eq(heard, expected, "%s: %s", frame, heard);
    freeReplyObject(reply);
}
#define PUSH(frame, expected) push(frame, sizeof(frame) - 1, expected)

#define MESSAGE "$7\r\nmessage\r\n"
#define PMESSAGE "$8\r\npmessage\r\n"
#define SUBSCRIBE "$9\r\nsubscribe\r\n"
#define UNSUBSCRIBE "$11\r\nunsubscribe\r\n"
#define C "$1\r\nc\r\n"
#define X "$1\r\nx\r\n"

Test(pubsub, hears_messages_of_its_channels_and_what_its_pattern_matched)
{
    PUSH("*3\r\n" MESSAGE C X, "message c x");
    PUSH("*3\r\n" MESSAGE C "$0\r\n\r\n", "message c ");
    PUSH("*3\r\n" MESSAGE X X, "");
    PUSH("*4\r\n" PMESSAGE "$7\r\npattern\r\n" C X, "matched c x");
}

Test(pubsub, is_confirmed_once_and_only_if_it_asked)
{
    PUSH("*3\r\n" SUBSCRIBE C ":1\r\n", "");
    s.channel.asked = true;
    PUSH("*3\r\n" SUBSCRIBE X ":1\r\n", "");
    PUSH("*3\r\n" SUBSCRIBE C ":1\r\n", "confirmed c ");
    PUSH("*3\r\n" SUBSCRIBE C ":1\r\n", "");
}

Test(pubsub, of_the_end_of_what_it_has_not_left_says_nothing)
{
    PUSH("*3\r\n" UNSUBSCRIBE X ":0\r\n", "");
    PUSH("*3\r\n" UNSUBSCRIBE C ":0\r\n", "");
    s.channel.asked = true;
    PUSH("*3\r\n" UNSUBSCRIBE C ":0\r\n", "");
    cr_expect(s.channel.asked);
}

Test(pubsub, passes_over_frames_of_another_shape)
{
    PUSH("+OK\r\n", "");
    PUSH(":1\r\n", "");
    PUSH("*0\r\n", "");
    PUSH("*1\r\n" MESSAGE, "");
    PUSH("*2\r\n" MESSAGE C, "");
    PUSH("*3\r\n" MESSAGE C ":1\r\n", "");
    PUSH("*3\r\n" MESSAGE ":1\r\n" X, "");
    PUSH("*3\r\n:1\r\n" C X, "");
    PUSH("*3\r\n*1\r\n" MESSAGE C X, "");
    PUSH("*3\r\n" PMESSAGE "$7\r\npattern\r\n" C, "");
    PUSH("*4\r\n" PMESSAGE "$7\r\npattern\r\n" C ":1\r\n", "");
    PUSH("*3\r\n$10\r\npsubscribe\r\n$7\r\npattern\r\n:1\r\n", "");
    PUSH("*3\r\n$5\r\nother\r\n" C X, "");
}

Test(pubsub, that_is_not_connected_has_nothing_to_ask_and_nothing_to_leave)
{
    cr_expect_not(s.pubsub.conn.events->ask(s.pubsub.conn.arg));
    s.channel.asked = true;
    cr_expect_not(s.pubsub.conn.events->ask(s.pubsub.conn.arg));
    pubsub_remove(&s.pubsub, &s.channel);
    cr_expect_not(s.channel.leaving);
    PUSH("*3\r\n" MESSAGE C X, "");
}

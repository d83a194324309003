/* SPDX-License-Identifier: MIT */
/* Ids and bodies that mean something to another program. */
#include "script.h"

SCRIPTS(names);

static const char *const ids[] = {
    "-rf",  "$(x)", "%s",   "%d%n",       "*",     "?",     "[a-z]", "a:b",
    "NX",   "GT",   "XX",   "WITHSCORES", "LIMIT", "(5",    "[a",    "-inf",
    "+inf", "nan",  "0",    "-1",         "1e15",  "1e400", "due",   "members",
    "a'b",  "\"",   "\\5c", "\\5c0",      "~",     "!",     "nil",   "false",
};

Test(names, every_id_lives_a_whole_life)
{
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const char *id = ids[i];
        const char *token = text("U+%zu", 3 * i + 1);
        RUN("schedule", text("0 %s +50 0 " REC "x", id), "[U T+50]");
        RUN("get", text("0 %s", id), text("[U ['%s' 1 T+50 '' '" REC "x']]", id));
        RUN("list", "0 1 10 '' ''", text("[U 0 ['%s' 1 T+50 '' '" REC "x']]", id));
        RUN("list", text("0 1 10 T+50 %s", id), "[U 0]");
        KEYS(text("due %s:T+50 | jobs %s=" REC "x | %st %s:T+49", id, id,
                  i ? text("seq U+%zu | ", 3 * i) : "", id));
        heard();
        RUN("reschedule", text("0 %s +0 0", id), text("[U ['%s' 1 T '' '" REC "']]", id));
        HEARD(text("0 '0 %s'", id));
        RUN("claim", text("0 me 10 0 %s", id),
            text("[U 0 0 0 0 0 0 ['%s' 2 T+10 '1 %s me 1 10 U T ' '" REC "x' 1]]", id, token));
        RUN("renew", text("0 me %s %s 20", id, token), "[U T+20]");
        RUN("release", text("0 me %s %s", id, token), "[U 1]");
        given("claim", "0 me 10 1");
        RUN("retry", text("0 me %s U+%zu 0 %s", id, 3 * i + 2, id), "[U T]");
        HEARD(text("0 '0 %s'", id));
        given("claim", "0 me 10 1");
        RUN("fail", text("0 me %s U+%zu %s", id, 3 * i + 3, id), "[U 1]");
        KEYS(text("dead %s:T | jobs %s=" REC "x | attempts %s=1 U+%zu me 2 10 U T %s | seq U+%zu",
                  id, id, id, 3 * i + 3, id, 3 * i + 3));
        RUN("cancel", text("0 %s 0", id),
            text("[U ['%s' 3 T '1 U+%zu me 2 10 U T %s' '" REC "']]", id, 3 * i + 3, id));
    }
}

Test(names, all_ids_go_together)
{
    char *schedule = text("0");
    char *claim = text("0 me 10 0");
    char *done = text("0 me");
    char *all = text("[U+10000");
    size_t n = sizeof ids / sizeof *ids;

    for (size_t i = 0; i < n; i++) {
        schedule = text("%s %s +0 0 " REC, schedule, ids[i]);
        claim = text("%s %s", claim, ids[i]);
        done = text("%s %s U+%zu", done, ids[i], 10000 + i + 1);
        all = text("%s 1", all);
    }

    given("schedule", schedule);
    cr_assert_eq(run("claim", claim)->elements, 7 + n);
    now_at(10);
    given("sweep", "0");
    given("touch", "0 me 10 0 0 0 1 1 24");
    now_at(0);
    cr_assert_eq(run("claim", "0 me 10 100")->elements, 7);
    now_at(10);
    cr_assert_eq(run("claim", claim)->elements, 7 + n);
    RUN("done", done, text("%s]", all));
}

Test(names, an_id_may_be_of_255_bytes)
{
    char *id = text("%0255d", 7);

    RUN("schedule", text("0 %s +0 0 " REC, id), "[U T]");
    RUN("claim", text("0 me 10 0 %s", id),
        text("[U 0 0 0 0 0 0 ['%s' 2 T+10 '1 U+1 me 1 10 U T ' '" REC "' 1]]", id));
    RUN("done", text("0 me %s U+1", id), "[U 1]");
    KEYS("seq U+1");
}

static void comes_back(const char *body, size_t body_len)
{
    size_t len = body_len + 2;
    char *rec = memcpy(calloc(1, len), "\1", 2);

    memcpy(rec + 2, body, body_len);

    const char *argv[] = {"0", "a", "+0", "2", rec};
    size_t lens[] = {1, 1, 2, 1, len};
    given("cancel", "0 a 0");
    cr_assert_eq(run_bytes("schedule", 5, argv, lens)->type, REDIS_REPLY_ARRAY);

    redisReply *row[] = {run("get", "0 a")->element[1], run("list", "0 1 1 '' ''")->element[2],
                         run("claim", "0 me 10 1")->element[7], run("get", "0 a")->element[1]};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        cr_assert(row[i]->element[4]->len == (__typeof__(row[i]->element[4]->len))len &&
                  memcmp(row[i]->element[4]->str, rec, len) == 0);
    }

    now_at(10);
    given("sweep", "0");
    now_at(0);
    free(rec);
}

Test(names, a_body_comes_back_byte_for_byte)
{
    static char mib[1 << 20];

    for (size_t i = 0; i < sizeof mib; i++) {
        mib[i] = (char)(i * 7 + i / 256);
    }

    comes_back("", 0);
    comes_back("\0", 1);
    comes_back("a\0b\r\n%s '$(x)", 14);
    comes_back("\200\201\7", 3); /* no varint: the header has ended */
    comes_back(mib, 256);
    comes_back(mib, sizeof mib);
}

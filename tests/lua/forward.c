/* SPDX-License-Identifier: MIT */
/* Jobs that claim and touch move to a stream or a list, and trim, which frees the stream. */
#include "script.h"

SCRIPTS(forward);
SCRIPTS(trim);

#define TOLD "9007199254740992"
#define STREAM "forward=stream:s:{q}:stream"
#define LIST "forward=list:s:{q}:list"

/* The fields of each entry, or the elements, the oldest first. */
static const char *stream_of(const char *key)
{
    redisReply *all = ask("XRANGE %s - +", key);
    const char *out = "";

    for (size_t i = 0; i < all->elements; i++) {
        out = text("%s%s%s", out, i ? " " : "", show(all->element[i]->element[1]));
    }
    return out;
}

static const char *list_of(const char *key)
{
    redisReply *all = ask("LRANGE %s 0 -1", key);
    const char *out = "";

    for (size_t i = all->elements; i-- > 0;) {
        out = text("%s%s%s", out, *out ? " " : "", show(all->element[i]));
    }
    return out;
}

#define SAME(what, got, expected) same(__FILE__, __LINE__, what, got, expected)

static void end(void)
{
    ask("FLUSHALL");
}

/* ---- what is moved, and how it looks there ---- */
Test(forward, moves_due_jobs_to_a_stream_and_keeps_nothing_of_them)
{
    given("schedule", "0 a +1 0 " REC "one b +2 0 \\01\\01\\83\\01two c +9 0 " REC);
    given("configure", "0 forward=stream");
    now_at(2);
    RUN("claim", "0 me 1000 1", "[U+2000 0 T+9 0 0 0 2]");
    SAME("stream", stream_of("s:{q}:stream"),
         "['id' 'a' 'due_ms' 'T+1' 'try' '1' 'token' 'U+2001' 'body' 'one'] "
         "['id' 'b' 'due_ms' 'T+2' 'try' '1' 'token' 'U+2002' 'body' 'two']");
    KEYS("due c:T+9 | jobs c=" REC " | seq U+2002 | conf 1 " STREAM "  | t c:T+8");
    HEARD("");
    RUN("claim", "0 me 1000 1", "[U+2000 0 T+9 0 0 0 0]");
    end();
}

Test(forward, moves_due_jobs_to_a_list_as_jobs_as_bodies_or_as_ids)
{
    static const struct {
        const char *element, *setting, *expected;
    } c[] = {{"", "", "'a T 1 U+1 one' 'b T 1 U+2 t w o' 'c T 1 U+3 '"},
             {"job", "forward_element=job ", "'a T 1 U+1 one' 'b T 1 U+2 t w o' 'c T 1 U+3 '"},
             {"body", "forward_element=body ", "'one' 't w o' ''"},
             {"id", "forward_element=id ", "'a' 'b' 'c'"}};

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        given("configure", text("0 'forward=list forward_element=%s'", c[i].element));
        given("schedule", "0 a +0 0 " REC "one b +0 0 '" REC "t w o' c +0 0 " REC);
        RUN("claim", "0 me 1000 0 b", "[U 0 0 0 0 0 3]");
        SAME(c[i].element, list_of("s:{q}:list"), c[i].expected);
        KEYS(text("seq U+3 | conf 1 " LIST " %s", c[i].setting));
        end();
    }
}

Test(forward, gives_any_bytes_of_a_body)
{
    static const struct {
        const char *rec;
        size_t len;
    } c[] = {{"\1\0a\0b\xff\r\n", 8}, {"\1\0", 2}, {"\1\1\5\7", 4}};

    given("configure", "0 'forward=list forward_element=body'");
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        const char *argv[] = {"0", "a", "+0", "0", c[i].rec};
        size_t len[] = {1, 1, 2, 1, c[i].len};
        size_t header = i == 2 ? 3 : 2;
        run_bytes("schedule", 5, argv, len);
        given("claim", "0 - 0 1");
        redisReply *r = ask("RPOP s:{q}:list");
        cr_assert_eq((size_t)r->len, c[i].len - header);
        cr_assert(memcmp(r->str, c[i].rec + header, c[i].len - header) == 0);
    }
    end();
}

/* Those of another form count as missing. */
Test(forward, gives_a_stream_the_headers_of_a_job)
{
    given("schedule", "0 a +0 0 \\02\\00\\13h\\03x=1h\\02y=h\\02noh\\02=vz\\00one b +0 0 " REC);
    given("configure", "0 forward=stream");
    given("claim", "0 me 1000 1");
    SAME(
        "stream", stream_of("s:{q}:stream"),
        "['id' 'a' 'due_ms' 'T' 'try' '1' 'token' 'U+1' 'body' 'one' 'header:x' '1' 'header:y' ''] "
        "['id' 'b' 'due_ms' 'T' 'try' '1' 'token' 'U+2' 'body' '']");

    given("configure", "0 forward=list");
    given("schedule", "0 a +0 0 \\02\\00\\05h\\03x=1one");
    given("claim", "0 me 1000 1");
    SAME("list", list_of("s:{q}:list"), "'a T 1 U+3 one'");
    end();
}

/* A list that is used as a set merges them. */
/* A job may have been stored with longer ones by another program. */
Test(forward, gives_no_header_of_more_than_64_and_255_bytes)
{
    const char *name = text("%064d", 0);
    const char *value = text("%0255d", 0);

    given("configure", "0 forward=stream");
    given("schedule",
          text("0 a +0 0 \\02\\00\\92\\05h\\42%s=1h\\43%sn=1h\\81\\02v=%sh\\82\\02w=%s0b", name,
               name, value, value));
    given("claim", "0 me 1000 0");
    SAME("stream", stream_of("s:{q}:stream"),
         text("['id' 'a' 'due_ms' 'T' 'try' '1' 'token' 'U+1' 'body' 'b' 'header:%s' '1' "
              "'header:v' '%s']",
              name, value));
    end();
}

Test(forward, keeps_equal_bodies_apart)
{
    given("configure", "0 'forward=list forward_element=body'");
    given("schedule", "0 a +0 0 " REC "same b +0 0 " REC "same");
    given("claim", "0 me 1000 1");
    SAME("list", list_of("s:{q}:list"), "'same' 'same'");
    end();
}

Test(forward, goes_to_another_key_in_the_slot_of_the_queue)
{
    given("configure", "0 'forward=stream:other:{q}'");
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1");
    SAME("stream", stream_of("other:{q}"),
         "['id' 'a' 'due_ms' 'T' 'try' '1' 'token' 'U+1' 'body' '']");
    end();
}

Test(forward, by_touch_says_what_comes_next)
{
    given("schedule", "0 a +1 0 " REC " c +1 0 " REC " d +20 0 " REC " e +2000 0 " REC);
    given("configure", "0 forward=list");
    now_at(1);
    /* c is another's, and it may claim no job */
    RUN("touch", "0 me 1000 0 T-5 0 2 0 24", "[U+1000 0 T+20 0 0 0 2 2 0 0 T-5 0 T+1000 'T+20']");
    SAME("list", list_of("s:{q}:list"), "'a T+1 1 U+1001 ' 'c T+1 1 U+1002 '");
    KEYS("due d:T+20 e:T+2000 | jobs d=" REC " e=" REC " | seq U+1002 | conf 1 " LIST
         "  | t d:T+19 e:T+1999");
    RUN("touch", "0 me 1000 9 T-5 0 2 0 0", "[U+1000 0 T+20 0 0 0 0 0 0 0 T-5 0 0 '']");
    end();
}

/* The events of these will come, and ask for nothing more. */
Test(forward, by_touch_names_the_jobs_whose_triggers_its_reading_expired_if_that_is_sure)
{
    ask("DEBUG SET-ACTIVE-EXPIRE 0");
    given("configure", "0 forward=list");
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC);
    ask("SET s:{q}:t:a 1 PX 1");
    ask("SET s:{q}:t:b 1 PX 1");
    wait_until(redis_now_ms(redis) + 1);
    /* c had none: which two of the three it expired is not known */
    RUN("touch", "0 me 1000 1 0 0 1 1 0", "[U 0 0 0 0 0 3 3 0 2 0 0 0 '']");

    given("schedule", "0 b +0 0 " REC " c +0 0 " REC);
    ask("SET s:{q}:t:b 1 PX 1");
    ask("SET s:{q}:t:c 1 PX 1");
    wait_until(redis_now_ms(redis) + 1);
    RUN("touch", "0 me 1000 0 0 0 2 0 0", "[U 0 0 0 0 0 2 2 0 2 0 0 0 '' 'b' 'c']");

    given("schedule", "0 b +0 0 " REC);
    ask("SET s:{q}:t:b 1");
    RUN("touch", "0 me 1000 1 0 0 1 1 0", "[U 0 0 0 0 0 1 1 0 0 0 0 0 '']");
    KEYS("seq U+6 | conf 1 " LIST " ");
    end();
}

Test(forward, counts_the_tries_and_grows_the_tokens)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 0 why");
    given("configure", "0 forward=list");
    given("claim", "0 me 1000 1");
    SAME("list", list_of("s:{q}:list"), "'a T 2 U+2 '");
    KEYS("seq U+2 | conf 1 " LIST " ");
    end();
}

Test(forward, moves_a_hundred_at_most_and_says_whether_more_are_due)
{
    many(0, 150, "+0");
    given("configure", "0 forward=stream");
    ask("CONFIG RESETSTAT");
    RUN("claim", "0 me 1000 1", "[U T 0 0 0 0 100]");
    cr_assert_eq(calls("xadd"), 100);
    cr_assert_eq(calls("zrem"), 1);
    RUN("touch", "0 me 1000 1 0 0 1 1 0", "[U 0 0 0 0 0 50 50 0 0 0 0 0 '']");
    cr_assert_eq(redis_int(redis, "XLEN s:{q}:stream"), 150);
    KEYS("seq U+150 | conf 1 " STREAM " ");

    many(0, 150, "+0");
    RUN("touch", "0 me 1000 1 0 0 1 1 0", "[U T 0 0 0 0 100 100 0 0 0 1 0 '']");
    end();
}

Test(forward, reads_no_batch_more_after_256_KiB)
{
    static char body[262145] = {1, 0};
    const char *argv[1 + 4 * 4] = {"0"};
    size_t len[1 + 4 * 4] = {1};

    for (size_t i = 0; i < 4; i++) {
        const char *job[] = {text("%zu", i), "+0", "0", body};
        memcpy(argv + 1 + 4 * i, job, sizeof job);
        memcpy(len + 1 + 4 * i, (size_t[]){1, 2, 1, i ? 2 : sizeof body}, 4 * sizeof *len);
    }
    run_bytes("schedule", 17, argv, len);
    given("configure", "0 forward=stream");
    RUN("claim", "0 me 1000 1", "[U T 0 0 0 0 1]");
    RUN("claim", "0 me 1000 1", "[U 0 0 0 0 0 3]");
    end();
}

Test(forward, lets_jobs_die_that_cannot_be_read_and_removes_those_without_a_record)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 \\02 c +0 0 " REC);
    ask("ZADD s:{q}:due 5 m");
    given("configure", "0 forward=list");
    RUN("claim", "0 me 1000 1",
        "[U 0 0 1 1 0 2 ['b' 3 T '1 0 me 0 0 U T stored data is in a format this version cannot "
        "read' "
        "'' 0]]");
    SAME("list", list_of("s:{q}:list"), "'a T 1 U+1 ' 'c T 1 U+2 '");
    KEYS("dead b:T | jobs b=\\02 | attempts b=1 0 me 0 0 U T stored data is in a format this "
         "version cannot read | seq U+2 | conf 1 " LIST " ");
    end();
}

/* Another program wrote it, and no consumer could settle it. */
Test(forward, lets_a_job_die_whose_id_is_none)
{
    given("configure", "0 forward=list");
    ask("ZADD s:{q}:due 5 %s", "a b");
    ask("HSET s:{q}:jobs %s %b", "a b", "\1\1\1", (size_t)3);
    RUN("claim", "0 me 1000 1", "[U 0 0 1 0 0 0]");
    SAME("list", list_of("s:{q}:list"), "");
    SAME("dead", show(ask("ZRANGE s:{q}:dead 0 -1")), "['a b']");
    end();
}

Test(forward, of_a_paused_queue_moves_nothing)
{
    given("schedule", "0 a +0 0 " REC);
    given("configure", "0 'forward=list paused=+500'");
    RUN("claim", "0 me 1000 1", "[U 0 0 0 0 T+500 0]");
    RUN("claim", "0 - 1000 1", "[U 0 0 0 0 T+500 0]");
    cr_assert_eq(redis_int(redis, "LLEN s:{q}:list"), 0);
    end();
}

/* ---- who only forwards ---- */
Test(forward, is_all_that_the_holder_dash_does)
{
    given("schedule", "0 a +0 0 " REC);
    char *before = dumps();
    RUN("claim", "0 - 1000 1", "[U 0 0 0 0 " TOLD " 0]");
    RUN("claim", "0 - 1000 0 a", "[U 0 0 0 0 " TOLD " 0]");
    RUN("touch", "0 - 1000 1 0 0 1 1 24", "[U 0 0 0 0 " TOLD " 0 0 0 0 0 0 0 '']");
    same(__FILE__, __LINE__, "keys", dumps(), before);
    given("configure", "0 forward=list");
    RUN("claim", "0 - 1000 1", "[U 0 0 0 0 0 1]");
    end();
}

/* ---- a target that is full ---- */
Test(forward, with_so_many_entries_there_keeps_the_jobs_waiting)
{
    static const char *const kinds[] = {"stream", "list"};

    for (size_t i = 0; i < 2; i++) {
        const char *pop = i ? "LPOP s:{q}:list 2" : "XTRIM s:{q}:stream MAXLEN 1";
        many(0, 10, "+0");
        given("configure", text("0 'forward=%s forward_max=3'", kinds[i]));
        RUN("claim", "0 me 1000 1", "[U T 0 0 0 0 3]");
        RUN("claim", "0 me 1000 1", "[U 0 0 0 0 T+100 0]");
        RUN("touch", "0 me 1000 1 0 0 1 1 24", "[U 0 0 0 0 T+100 0 0 0 0 0 0 0 '']");
        ask(pop);
        RUN("claim", "0 me 1000 1", "[U T 0 0 0 0 2]");
        RUN("claim", "0 me 1000 1", "[U 0 0 0 0 T+100 0]");
        cr_assert_eq(redis_int(redis, "ZCARD s:{q}:due"), 5);
        end();
    }
}

/* ---- refusals ---- */
static void waits(const char *error)
{
    char *before = dumps();
    redisReply *r = run("claim", "0 me 1000 10");
    cr_assert(r->type == REDIS_REPLY_ERROR && strncmp(r->str, error, strlen(error)) == 0, "%s",
              show(r));
    r = run("touch", "0 me 1000 10 0 0 1 1 24");
    cr_assert(r->type == REDIS_REPLY_ERROR && strncmp(r->str, error, strlen(error)) == 0, "%s",
              show(r));
    same(__FILE__, __LINE__, error, dumps(), before);
    HEARD("");
}

Test(forward, to_a_target_of_another_type_is_refused_whole)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 \\02");
    given("configure", "0 forward=list");
    ask("SET s:{q}:list x");
    waits("WRONGTYPE ");
    ask("DEL s:{q}:list");
    given("configure", "0 forward=stream");
    ask("RPUSH s:{q}:stream x");
    waits("WRONGTYPE ");
    end();
}

Test(forward, when_redis_is_out_of_memory_is_refused_whole)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 \\02");
    given("configure", "0 forward=stream");
    redis_do(redis, "CONFIG SET maxmemory 1");
    waits("OOM ");
    given("configure", "0 forward=list");
    waits("OOM ");
    redis_do(redis, "CONFIG SET maxmemory 0");
    RUN("claim", "0 me 1000 1",
        "[U 0 0 1 0 0 1 ['b' 3 T '1 0 me 0 0 U T stored data is in a format this version cannot "
        "read' '' 0]]");
    end();
}

Test(forward, without_a_right_is_refused_whole_and_names_it)
{
    static const char *const c[][2] = {{"stream", "xadd"}, {"list", "lpush"}, {"stream", "xlen"}};

    given("schedule", "0 a +0 0 " REC);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        given("configure", text("0 forward=%s", c[i][0]));
        char *before = dumps();
        redis_do(redis, "ACL SETUSER u reset on nopass ~* &* +@all -%s", c[i][1]);
        redis_do(redis, "AUTH u x");
        redisReply *r = run("claim", "0 me 1000 1");
        redis_do(redis, "AUTH default x");
        cr_assert(r->type == REDIS_REPLY_ERROR && strcasestr(r->str, c[i][1]), "%s", show(r));
        same(__FILE__, __LINE__, c[i][1], dumps(), before);
    }
    end();
}

Test(forward, to_a_target_that_a_newer_version_knows_is_refused)
{
    given("schedule", "0 a +0 0 " REC);
    ask("SET s:{q}:conf %s", "1 forward=topic:s:{q}:topic ");
    waits("ERR s:{q}:conf has a target that this version does not know");
    ask("SET s:{q}:conf %s", "1 forward=stream ");
    waits("ERR s:{q}:conf has a target that this version does not know");
    end();
}

/* ---- configure ---- */
Test(forward, takes_no_wrong_target)
{
    static const char rule[] = "must be stream, list, stream:KEY or list:KEY, where {q} is the "
                               "first hash tag of KEY, and KEY is none of the keys of lapse";
    static const char *const bad[] = {
        "stream:x",         "stream:{r}x",  "stream:{r}{q}",
        "stream:{}{q}",     "stream:q",     "stream:s:{q}:t",
        "stream:s:{q}:due", "list:s:{q}:x", "list:s:{q}:stream",
        "stream:{q",        "set",          "stream;x",
        "Stream",           "streams:{q}",  "list:{q}:}{",
    };
    char *before = dumps();

    for (size_t i = 0; i + 1 < sizeof bad / sizeof *bad; i++) {
        RUN("configure", text("0 forward=%s", bad[i]),
            text("[U 'forward=%s: %s' '']", bad[i], rule));
    }
    RUN("configure", "0 'forward=stream:{q} x'",
        "[U 'x: must be NAME=VALUE, of printable ASCII characters' '']");
    RUN("configure", text("0 forward=list:{q}%0300d", 0),
        text("[U 'forward=list:{q}%0300d: %s' '']", 0, rule));
    same(__FILE__, __LINE__, "keys", dumps(), before);

    static const char *const good[] = {"stream:{q}", "list:x{q}y", "list:{q}{r}", "list:s:{q}:list",
                                       "stream:other:{q}:due"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        RUN("configure", text("0 forward=%s", good[i]), text("[U '' 'forward=%s']", good[i]));
    }
    RUN("configure", "0 forward=stream:", "[U '' '" STREAM "']");
    RUN("configure", "0 forward=list", "[U '' '" LIST "']");
    end();
}

Test(forward, takes_no_target_of_another_type)
{
    ask("LPUSH s:{q}:stream x");
    ask("HSET s:{q}:list x y");
    RUN("configure", "0 forward=stream", "[U '" STREAM ": the type of this key is list' '']");
    RUN("configure", "0 forward=list", "[U '" LIST ": the type of this key is hash' '']");
    KEYS("");
    end();
}

Test(forward, takes_no_wrong_number_element_or_group)
{
    static const char *const bad[][2] = {
        {"forward_max=0", "forward_max=0: must be a number from 1 to 1000000000"},
        {"forward_max=-1", "forward_max=-1: must be a number from 1 to 1000000000"},
        {"forward_max=1000000001", "forward_max=1000000001: must be a number from 1 to 1000000000"},
        {"forward_max=many", "forward_max=many: must be a number from 1 to 1000000000"},
        {"forward=list forward_element=key", "forward_element=key: must be job, body or id"},
        {"forward=list forward_element=j.b", "forward_element=j.b: must be job, body or id"},
        {"forward_element=id", "forward_element=id: only if forward is a list"},
        {"forward=stream forward_element=id", "forward_element=id: only if forward is a list"},
        {"forward=list forward_groups=g", "forward_groups=g: only if forward is a stream"},
        {"forward=stream forward_groups=a,,b",
         "forward_groups=a,,b: must be names with a comma between, at most 1024 bytes"},
        {"forward=stream forward_groups=,",
         "forward_groups=,: must be names with a comma between, at most 1024 bytes"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RUN("configure", text("0 '%s'", bad[i][0]), text("[U '%s' '']", bad[i][1]));
    }
    KEYS("");
    given("configure", "0 'forward=list forward_element=id'");
    RUN("configure", "0 forward=", "[U 'forward_element=id: only if forward is a list' '']");
    RUN("configure", "0 'forward= forward_element='", "[U '' '']");
    RUN("configure", "0 'forward=list forward_max=1000000000'",
        "[U '' '" LIST " forward_max=1000000000']");
    end();
}

Test(forward, takes_groups_of_1024_bytes_and_no_more)
{
    char names[1026];
    redisReply *r;

    memset(names, 'g', sizeof names);
    names[1025] = '\0';
    r = run("configure", text("0 'forward=stream forward_groups=%s'", names));
    cr_assert(strstr(r->element[1]->str, "at most 1024 bytes"), "%s", r->element[1]->str);
    KEYS("");

    names[1024] = '\0';
    r = run("configure", text("0 'forward=stream forward_groups=%s'", names));
    cr_assert_str_eq(r->element[1]->str, "");
    cr_assert(strstr(r->element[2]->str, names));
    end();
}

/* It is a change that is refused. */
Test(forward, is_shown_though_the_target_has_another_type_by_now)
{
    given("configure", "0 forward=list");
    ask("SET s:{q}:list x");
    RUN("configure", "0 ''", "[U '' '" LIST "']");
    RUN("configure", "0 forward_max=5",
        "[U 'forward=list:s:{q}:list: the type of this key is string' '']");
    RUN("configure", "0 'forward_max= forward='", "[U '' '']");
    end();
}

static const char *groups(void)
{
    redisReply *r = ask("XINFO GROUPS s:{q}:stream");
    const char *out = "";

    for (size_t i = 0; i < r->elements; i++) {
        out = text("%s%s%s from %s", out, i ? ", " : "", r->element[i]->element[1]->str,
                   r->element[i]->element[7]->str);
    }
    return out;
}

Test(forward, makes_the_groups_from_the_start_of_the_stream)
{
    ask("XADD s:{q}:stream 5-5 id old");
    RUN("configure", "0 'forward=stream forward_groups=g,h'",
        "[U '' '" STREAM " forward_groups=g,h']");
    SAME("groups", groups(), "g from 0-0, h from 0-0");
    ask("XGROUP SETID s:{q}:stream g 5-5");
    RUN("configure", "0 forward_groups=g,i,g", "[U '' '" STREAM " forward_groups=g,i,g']");
    SAME("groups", groups(), "g from 5-5, h from 0-0, i from 0-0");
    end();
}

/* seed-001 lost what came before its group was made again. */
Test(forward, makes_the_groups_again_with_a_stream_that_was_removed)
{
    given("configure", "0 'forward=stream forward_groups=g,h'");
    ask("DEL s:{q}:stream");
    given("schedule", "0 a +0 0 " REC);
    RUN("claim", "0 me 1000 1", "[U 0 0 0 0 0 1]");
    SAME("groups", groups(), "g from 0-0, h from 0-0");
    ask("XGROUP DESTROY s:{q}:stream h"); /* a user wants it so */
    given("schedule", "0 b +0 0 " REC);
    given("claim", "0 me 1000 1");
    SAME("groups", groups(), "g from 0-0");
    end();
}

/* ---- trim ---- */
static void add(int n)
{
    for (int i = 1; i <= n; i++) {
        ask("XADD s:{q}:stream %d-1 id %d", i, i);
    }
}

static void reads(const char *group, int n)
{
    ask("XREADGROUP GROUP %s c COUNT %d STREAMS s:{q}:stream >", group, n);
}

/* The stream of which each entry was trimmed has its groups still. */
Test(forward, to_a_stream_that_is_empty_leaves_its_groups_as_they_are)
{
    given("configure", "0 'forward=stream forward_groups=g'");
    given("schedule", "0 a +0 0 " REC);
    RUN("claim", "0 me 1000 1", "[U 0 0 0 0 0 1]");
    ask("XREADGROUP GROUP g c STREAMS s:{q}:stream >");
    ask("XTRIM s:{q}:stream MAXLEN 0");
    given("schedule", "0 b +0 0 " REC);
    RUN("claim", "0 me 1000 1", "[U 0 0 0 0 0 1]");
    cr_assert_eq(redis_int(redis, "XLEN s:{q}:stream"), 1);
    end();
}

Test(forward, of_nothing_makes_no_stream_and_no_token)
{
    given("configure", "0 'forward=stream forward_groups=g'");
    ask("DEL s:{q}:stream");
    RUN("claim", "0 me 1000 1", "[U 0 0 0 0 0 0]");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:stream s:{q}:seq"), 0);
    end();
}

/* It was asked to stop in a run whose lease is over; who took it back did not know of that. */
Test(forward, leaves_out_a_job_that_was_cancelled)
{
    given("schedule", "0 a +0 0 " TAG_A "x b +0 0 " REC);
    given("claim", "0 me 1000 1");
    given("cancel", "0 a 1");
    ask("ZREM s:{q}:run a");
    ask("ZADD s:{q}:due 5 a");
    given("configure", "0 forward=list");
    RUN("claim", "0 me 1000 9", "[U 0 0 0 0 0 1]");
    SAME("list", list_of("s:{q}:list"), "'b T 1 U+2 '");
    KEYS("seq U+2 | conf 1 " LIST " ");
    end();
}

Test(trim, cuts_what_every_group_has_acknowledged)
{
    given("configure", "0 'forward=stream forward_groups=g,h'");
    add(5);
    RUN("trim", "0", "[U 0 5]");
    reads("g", 5), reads("h", 4);
    RUN("trim", "0", "[U 0 5]");
    ask("XACK s:{q}:stream g 1-1 2-1 3-1 5-1");
    RUN("trim", "0", "[U 0 5]");
    ask("XACK s:{q}:stream h 1-1 2-1 3-1 4-1");
    RUN("trim", "0", "[U 3 2]");
    ask("XACK s:{q}:stream g 4-1");
    RUN("trim", "0", "[U 1 1]");
    reads("h", 1);
    RUN("trim", "0", "[U 0 1]");
    ask("XACK s:{q}:stream h 5-1");
    RUN("trim", "0", "[U 1 0]");
    RUN("trim", "0", "[U 0 0]");
    end();
}

Test(trim, of_a_stream_without_groups_cuts_nothing)
{
    given("configure", "0 forward=stream");
    RUN("trim", "0", "[U 0 0]");
    add(3);
    RUN("trim", "0", "[U 0 3]");
    end();
}

Test(trim, of_a_queue_that_is_not_forwarded_to_a_stream_does_nothing)
{
    add(3);
    RUN("trim", "0", "[U 0 0]");
    given("configure", "0 forward=list");
    RUN("trim", "0", "[U 0 0]");
    cr_assert_eq(redis_int(redis, "XLEN s:{q}:stream"), 3);
    end();
}

Test(trim, keeps_what_comes_behind_the_last_entry_that_was_read)
{
    static const char *const ids[] = {"9-9", "9-10", "10-9", "99-18446744073709551615", "100-0"};
    enum { N = sizeof ids / sizeof *ids };

    given("configure", "0 'forward=stream forward_groups=g,h'");
    for (int i = 0; i < N; i++) {
        ask("XADD s:{q}:stream %s id x", ids[i]);
    }
    for (int i = 0; i < N; i++) {
        reads("h", 1);
        ask("XACK s:{q}:stream h %s", ids[i]);
        ask("XGROUP SETID s:{q}:stream g %s", ids[i]);
        given("trim", "0");
        long long left = redis_int(redis, "XLEN s:{q}:stream");
        cr_assert_eq(left, N - 1 - i + (i == 3), "%s: %lld", ids[i], left);
    }
    end();
}

Test(trim, goes_by_the_group_that_is_furthest_back_whichever_comes_first)
{
    static const char *const ids[] = {"9-9", "9-10", "10-9", "100-0"};
    enum { N = sizeof ids / sizeof *ids };

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            given("configure", "0 'forward=stream forward_groups=g,h'");
            for (int k = 0; k < N; k++) {
                ask("XADD s:{q}:stream %s id x", ids[k]);
            }
            ask("XGROUP SETID s:{q}:stream g %s", ids[i]);
            ask("XGROUP SETID s:{q}:stream h %s", ids[j]);
            int n_read = 1 + (i < j ? i : j);
            RUN("trim", "0", text("[U %d %d]", n_read, N - n_read));
            end();
        }
    }
}

Test(trim, of_a_key_of_another_type_is_refused)
{
    given("configure", "0 forward=stream");
    ask("LPUSH s:{q}:stream x");
    char *before = dumps();
    redisReply *r = run("trim", "0");
    cr_assert(r->type == REDIS_REPLY_ERROR && strncmp(r->str, "WRONGTYPE ", 10) == 0, "%s",
              show(r));
    same(__FILE__, __LINE__, "keys", dumps(), before);
    end();
}

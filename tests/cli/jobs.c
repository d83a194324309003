/* SPDX-License-Identifier: MIT */
/* schedule, cancel, reschedule, kill, get, list, depth: what they print and exit with. */
#include "tool.h"
#include "audit.h"
#include "proxy.h"
#include <hiredis/hiredis.h>
#include <signal.h>
#include <unistd.h>

/* Letters that a shell, printf, an option parser or Redis's patterns would take for
 * something else. */
static const char *const odd_ids[] = {"-rf",  "--",  "$(x)",  ";ls",   "%s%n",  "*",
                                      "`id`", "a|b", "\"'\\", "../..", "[a-z]?"};
enum { ODD = sizeof odd_ids / sizeof *odd_ids };

Test(schedule, prints_the_job_as_one_json_object)
{
    struct server *s = tool_redis();
    char expected[300];
    struct proc *p =
        lapse("schedule", "orders", "--id", "order-1", "--at", "@1", "--tries", "3", "x");

    expect(p, 2, "", "ten years");
    p = lapse("schedule", "orders", "--id", "order-1", "--in", "1h", "--tries", "3", "x");
    snprintf(expected, sizeof expected,
             "{\"queue\":\"orders\",\"id\":\"order-1\",\"state\":\"waiting\",\"due_ms\":%lld,"
             "\"try\":0,\"tries\":3,\"token\":0,\"until_ms\":0,\"reason\":\"\",\"created\":true}\n",
             member(p->out, "due_ms"));
    cr_assert_str_eq(p->out, expected);
    cr_assert_eq(p->err_len, 0, "%s", p->err);
    expect(p, 0, NULL, NULL);
    cr_assert_eq(audit(s, "lapse", "orders", NULL), 0);
    server_stop(s);
}

Test(schedule, makes_up_an_id_that_get_finds)
{
    struct server *s = tool_redis();
    struct proc *p = lapse("schedule", "q", "--in", "1h", "x");
    char id[256] = "";

    cr_assert_eq(sscanf(strstr(p->out, "\"id\":\""), "\"id\":\"%255[^\"]", id), 1, "%s", p->out);
    proc_free(p);
    expect(lapse("get", "q", id), 0, "\"body\":\"x\"", NULL);
    server_stop(s);
}

Test(schedule, of_an_id_that_exists_does_what_on_conflict_says)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "one"), 0, "\"created\":true", NULL);
    expect(lapse("schedule", "q", "--id", "i", "--in", "2h", "two"), 1, "",
           "q/i: it exists already");
    expect(lapse("schedule", "q", "--id", "i", "--in", "2h", "two", "--on-conflict", "keep"), 0,
           "\"created\":false", NULL);
    expect(lapse("get", "q", "i"), 0, "\"body\":\"one\"", NULL);
    expect(lapse("schedule", "q", "--id", "i", "--in", "2h", "two", "--on-conflict", "replace"), 0,
           "\"created\":true", NULL);
    expect(lapse("get", "q", "i"), 0, "\"body\":\"two\"", NULL);
    server_stop(s);
}

Test(schedule, with_headers_shows_them_where_the_body_is_shown)
{
    struct server *s = tool_redis();
    struct proc *p = lapse("schedule", "q", "--id", "i", "--in", "0s", "--header", "trace=a=b", "x",
                           "--header=\"\\=\xff\n", "--header", "empty=");

    cr_assert_null(strstr(p->out, "headers"), "as the body, it is not shown: %s", p->out);
    expect(p, 0, "\"created\":true}\n", NULL);
    expect(lapse("get", "q", "i"), 0,
           "\"body\":\"x\",\"headers\":{\"trace\":\"a=b\",\"\\\"\\\\\":\"\xef\xbf\xbd\\n\","
           "\"empty\":\"\"}}\n",
           NULL);
    expect(lapse("list", "q"), 0, ",\"headers\":{\"trace\":\"a=b\",", NULL);
    expect(lapse("get", "q", "i", "--format", "text"), 0,
           "header  trace=a=b\nheader  \"\\=\xef\xbf\xbd\\x0a\nheader  empty=\n", NULL);
    expect(lapse("listen", "q", "--count", "1"), 0, ",\"headers\":{\"trace\":\"a=b\",", NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(schedule, refuses_a_header_that_breaks_a_rule_and_says_which)
{
    static const char rule[] = "must be NAME=VALUE: a NAME of 1 to 64 printable ASCII characters, "
                               "without space, =, { and }, and a VALUE of at most 255 bytes";
    static const char *const bad[] = {"x", "=x", "a b=x", "{a}=x", "\xc3\xa9=x", ""};
    struct server *s = tool_redis();
    const char *many[60] = {"lapse", "schedule", "q", "--in", "1h"};
    char header[20][300];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect(lapse("schedule", "q", "--in", "1h", "--header", bad[i]), 2, "", rule);
    }
    snprintf(header[0], sizeof header[0], "a=%0256d", 0);
    expect(lapse("schedule", "q", "--in", "1h", "--header", header[0]), 2, "", rule);
    expect(lapse("schedule", "q", "--in", "1h", "--header", "a=1", "--header", "a=2"), 2, "",
           "--header 'a': is given twice");

    for (int i = 0; i < 17; i++) {
        snprintf(header[i], sizeof header[i], "h%d=%0250d", i, 0);
        many[5 + 2 * i] = "--header";
        many[6 + 2 * i] = header[i];
    }
    many[5 + 2 * 16] = NULL;
    struct proc *p = proc_start(many);
    proc_wait(p, PROC_WAIT_MS);
    expect(p, 2, "",
           "tags, headers, --unique, --if and what else the record says of the job take 4102 "
           "bytes; they may "
           "take 4096");

    for (int i = 0; i < 17; i++) {
        snprintf(header[i], sizeof header[i], "h%d=x", i);
    }
    p = proc_start(many);
    proc_wait(p, PROC_WAIT_MS);
    expect(p, 0, "\"created\":true", NULL);
    many[5 + 2 * 16] = "--header";
    p = proc_start(many);
    proc_wait(p, PROC_WAIT_MS);
    expect(p, 2, "", "--header 'h16=x': is one too many: at most 16 are allowed");
    expect(lapse("depth", "q"), 0, "\"waiting\":1", NULL);
    server_stop(s);
}

/* As it is shown, it may be given again. */
Test(schedule, with_a_condition_shows_it)
{
    static const struct {
        const char *given, *shown, *text;
    } c[] = {
        {"order:{q}:1=paid", "\"if\":\"order:{q}:1=paid\"}\n", "if      order:{q}:1=paid\n"},
        {"order:{q}:1 s!=a = b", "\"if\":\"order:{q}:1 s!=a = b\"}\n", "order:{q}:1 s!=a = b\n"},
        {"order:{q}:1=", "\"if\":\"order:{q}:1=\"}\n", "order:{q}:1=\n"},
        {"order:{q}:1?", "\"if\":\"order:{q}:1?\"}\n", "order:{q}:1?\n"},
        {"order:{q}:1 s!", "\"if\":\"order:{q}:1 s!\"}\n", "order:{q}:1 s!\n"},
        {"order:{q}:1=\xff", "\"if_base64\":\"b3JkZXI6e3F9OjE9/w==\"}\n",
         "if      (13 bytes that are not text)\n"},
    };
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "--if", c[i].given, "x"), 0, "}\n",
               NULL);
        expect(lapse("get", "q", "a"), 0, c[i].shown, NULL);
        expect(lapse("list", "q"), 0, c[i].shown, NULL);
        expect(lapse("get", "q", "a", "--format", "text"), 0, c[i].text, NULL);
        expect(lapse("cancel", "q", "a"), 0, NULL, NULL);
    }
    server_stop(s);
}

Test(schedule, with_a_limit_of_lateness_shows_it)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "--max-late", "5s", "x"), 0,
           "\"created\":true,\"max_late_ms\":5000,\"late\":\"skip\"}\n", NULL);
    expect(lapse("schedule", "q", "--id", "b", "--in", "1h", "--max-late", "5s:dead", "--retry-for",
                 "1d", "--if", "{q}!", "x"),
           0, "\"max_late_ms\":5000,\"late\":\"dead\"", NULL);
    expect(lapse("get", "q", "b"), 0, "\"max_late_ms\":5000,\"late\":\"dead\",\"if\":\"{q}!\"}\n",
           NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0, "max late 5000 ms, then skip\n", NULL);
    static const char find[] = "return string.find(redis.call('HGET', 'lapse:{q}:jobs', 'b'), "
                               "'R\010' .. '86400000', 1, true)";
    cr_assert_gt(redis_int(s, "EVAL %s 0", find), 0);
    server_stop(s);
}

Test(schedule, with_keep_lets_get_and_list_show_what_became_of_a_job)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--keep", "1d", "x"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "b", "--in", "0s", "--keep", "1d:body", "x"), 0, NULL,
           NULL);
    expect(lapse("listen", "q", "--count", "2"), 0, NULL, NULL);
    struct proc *p = lapse("get", "q", "a");
    cr_assert(has(p, "\"state\":\"kept\"") && has(p, "\"body\":\"\"") &&
                  has(p, "\"end\":\"done\"}\n"),
              "%s", p->out);
    expect(p, 0, NULL, NULL);
    expect(lapse("get", "q", "b"), 0, "\"body\":\"x\"", NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0, "state   kept\nend     done\n", NULL);
    expect(lapse("list", "q"), 0, "", NULL);
    expect(lapse("list", "q", "--state", "kept"), 0, "\"end\":\"done\"", NULL);
    expect(lapse("depth", "q"), 0, "\"late_ms\":0,\"kept\":2}\n", NULL);
    expect(lapse("depth", "q", "--format", "text"), 0, "LATE       KEPT  QUEUE\n", NULL);
    expect(lapse("reschedule", "q", "a", "--in", "0s"), 1, "", "q/a: the job has ended");
    expect(lapse("kill", "q", "a"), 1, "", "the job has ended");
    expect(lapse("requeue", "q", "a"), 1, "", "the job is kept, not dead");
    expect(lapse("doctor", "q"), 0, "jobs         q: 2, each in one state", NULL);
    expect(lapse("cancel", "q", "--state", "kept"), 0, "\"cancelled\":2", NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(cancel, of_a_job_that_is_kept_succeeds_again_if_it_was_cancelled)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "--keep", "1d", "x"), 0, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        expect(lapse("cancel", "q", "a"), 0,
               "{\"queue\":\"q\",\"id\":\"a\",\"state\":\"cancelled\"}\n", NULL);
    }
    expect(lapse("get", "q", "a"), 0, "\"end\":\"cancelled\"}\n", NULL);
    expect(lapse("schedule", "q", "--id", "b", "--in", "0s", "--keep", "1d", "x"), 0, NULL, NULL);
    expect(lapse("listen", "q", "--count", "1"), 0, NULL, NULL);
    expect(lapse("cancel", "q", "b"), 1, "", "q/b: the job has ended");
    server_stop(s);
}

Test(schedule, with_a_priority_shows_it_and_refuses_one_over_255)
{
    static const char *const bad[] = {"256", "-1", "1.5", "high", "", "99999999999999999999"};
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "--priority", "255", "x"), 0,
           "\"created\":true,\"priority\":255}\n", NULL);
    expect(lapse("get", "q", "a"), 0, "\"body\":\"x\",\"priority\":255}\n", NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0, "priority 255\n", NULL);
    expect(lapse("schedule", "q", "--id", "b", "--in", "1h", "--priority", "0", "x"), 0,
           "\"created\":true}\n", NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect(lapse("schedule", "q", "--in", "1h", "--priority", bad[i]), 2, "",
               "must be a whole number from 0 to 255");
    }
    expect(lapse("depth", "q"), 0, "\"waiting\":2", NULL);
    server_stop(s);
}

Test(schedule, with_a_key_is_about_the_job_that_holds_it)
{
    static char long_key[257];
    struct server *s = tool_redis();

    memset(long_key, 'k', 256);
    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "--unique", "order-7", "x"), 0,
           "\"created\":true}\n", NULL);
    expect(lapse("schedule", "q", "--id", "j", "--in", "1h", "--unique", "order-7", "y"), 1, "",
           "it exists already");
    expect(lapse("schedule", "q", "--in", "1h", "--unique", "order-7", "--on-conflict", "keep"), 0,
           "\"id\":\"i\"", NULL);
    expect(lapse("schedule", "q", "--id", "j", "--in", "1s", "--unique", "order-7", "--on-conflict",
                 "later"),
           0, "\"created\":false}\n", NULL);
    expect(lapse("schedule", "q", "--id", "j", "--in", "1m", "--unique", "order-7", "--on-conflict",
                 "earlier"),
           0, "\"id\":\"i\"", NULL);
    expect(lapse("get", "q", "i"), 0, "\"body\":\"x\",\"unique\":\"order-7\"}\n", NULL);
    expect(lapse("get", "q", "i", "--format", "text"), 0, "unique  order-7\nbody    x\n", NULL);
    expect(lapse("list", "q"), 0, "\"unique\":\"order-7\"}\n", NULL);

    expect(lapse("kill", "q", "i"), 0, NULL, NULL);
    expect(
        lapse("schedule", "q", "--id", "j", "--in", "1h", "--unique", "order-7", "--until-start"),
        0, "\"id\":\"j\"", NULL);
    expect(lapse("reschedule", "q", "i", "--in", "1h"), 1, "", "it exists already");
    expect(lapse("requeue", "q"), 0, "\"requeued\":0", NULL);

    expect(lapse("schedule", "q", "--in", "1h", "--unique", "a b"), 2, "",
           "--unique 'a b': must be 1 to 255 printable ASCII characters, without space, { and }");
    expect(lapse("schedule", "q", "--in", "1h", "--unique", long_key), 2, "", "1 to 255");
    expect(lapse("schedule", "q", "--in", "1h", "--until-start"), 2, "", "give --unique, too");
    server_stop(s);
}

Test(schedule, with_created_keeps_when_the_job_was_stored_first)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "1h", "--created", "x"), 0,
           "\"created\":true,\"created_ms\":", NULL);
    expect(lapse("get", "q", "a"), 0, "\"body\":\"x\",\"created_ms\":", NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0, "\ncreated 2", NULL);
    expect(lapse("list", "q"), 0, "\"body\":\"x\",\"created_ms\":", NULL);
    expect(lapse("schedule", "q", "--id", "b", "--in", "1h", "x"), 0, "\"created\":true}\n", NULL);
    expect(lapse("get", "q", "b"), 0, "\"body\":\"x\"}\n", NULL);
    expect(lapse("schedule", "q", "--in", "1h", "x"), 0, "\"created\":true,\"created_ms\":", NULL);
    server_stop(s);
}

Test(schedule, with_debounce_puts_a_job_off)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "x", "--on-conflict", "debounce",
                 "--max-wait", "1h"),
           0, "\"created\":true}\n", NULL);
    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "y", "--on-conflict", "debounce",
                 "--max-wait", "2h"),
           0, "\"created\":false}\n", NULL);
    expect(lapse("get", "q", "i"), 0, "\"body\":\"y\"}\n", NULL);
    expect(lapse("schedule", "q", "--in", "1h", "--max-wait", "1h"), 2, "",
           "--max-wait is for --on-conflict debounce");
    expect(lapse("schedule", "q", "--in", "1h", "--on-conflict", "debounce", "--max-wait", "59m"),
           2, "", "--max-wait must not be shorter than --in");
    expect(lapse("schedule", "q", "--in", "1h", "--on-conflict", "debounce", "--max-wait", "0s"), 2,
           "", "must be at least 1ms");
    server_stop(s);
}

Test(schedule, that_meets_a_job_which_runs_lets_it_wait_again_after_its_run)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "0s", "x"), 0, NULL, NULL);
    expect(lapse("claim", "q", "--id", "i"), 0, "\"state\":\"running\"", NULL);
    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "y", "--on-conflict", "debounce"), 0,
           "\"state\":\"running\"", NULL);
    expect(lapse("schedule", "q", "--id", "i", "--in", "2h", "z", "--on-conflict", "earlier"), 0,
           "\"created\":false}\n", NULL);
    expect(lapse("get", "q", "i"), 0, "\"body\":\"x\"}\n", NULL);
    char *attempt = redis_str(s, "HGET lapse:{q}:attempts i");
    char *token = strtok(attempt + 2, " ");
    expect(lapse("done", "q", "i", token), 0, NULL, NULL);
    expect(lapse("get", "q", "i"), 0, "\"body\":\"y\"}\n", NULL);
    expect(lapse("get", "q", "i"), 0, "\"state\":\"waiting\"", NULL);
    free(attempt);
    server_stop(s);
}

Test(schedule, with_tags_is_found_by_them)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "--tag", "customer-7", "x", "--tag=\"",
                 "--header", "a=b"),
           0, "\"created\":true}\n", NULL);
    expect(lapse("schedule", "q", "--id", "j", "--in", "1h", "--tag", "customer-7"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "k", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("get", "q", "i"), 0,
           "\"body\":\"x\",\"tags\":[\"customer-7\",\"\\\"\"],\"headers\":{\"a\":\"b\"}}\n", NULL);
    expect(lapse("get", "q", "i", "--format", "text"), 0,
           "tag     customer-7\ntag     \"\nheader  a=b\nbody    x\n", NULL);

    struct proc *p = lapse("list", "q", "--tag", "customer-7");
    cr_assert(count_of(p->out, "\n") == 2 && has(p, "\"id\":\"i\"") && has(p, "\"id\":\"j\""), "%s",
              p->out);
    proc_free(p);
    p = lapse("list", "q", "--tag", "customer-7", "--limit", "1");
    cr_assert(count_of(p->out, "\n") == 1 && has(p, "\"id\":\"i\""), "%s", p->out);
    proc_free(p);
    p = lapse("list", "q", "--tag", "customer-8");
    cr_assert_str_eq(p->out, "");
    expect(p, 0, NULL, NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(schedule, refuses_a_tag_that_breaks_a_rule_and_says_which)
{
    static const char rule[] = "must be 1 to 64 printable ASCII characters, without space, { and }";
    static const char long_tag[] =
        "01234567890123456789012345678901234567890123456789012345678901234";
    static const char *const bad[] = {"", "a b", "{a}", "\xc3\xa9", long_tag};
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect(lapse("schedule", "q", "--in", "1h", "--tag", bad[i]), 2, "", rule);
        expect(lapse("list", "q", "--tag", bad[i]), 2, "", rule);
    }
    expect(lapse("schedule", "q", "--in", "1h", "--tag", "a", "--tag", "b", "--tag", "a"), 2, "",
           "--tag 'a': is given twice");
    expect(lapse("schedule", "q", "--in", "1h", "--tag", "1", "--tag", "2", "--tag", "3", "--tag",
                 "4", "--tag", "5", "--tag", "6", "--tag", "7", "--tag", "8", "--tag", "9"),
           2, "", "--tag '9': is one too many: at most 8 are allowed");
    expect(lapse("list", "q", "--tag", "a", "--state", "dead"), 2, "",
           "--state, --tag, --batch and --series: use only one of them");
    expect(lapse("depth", "q"), 0, "\"waiting\":0", NULL);
    server_stop(s);
}

Test(schedule, for_replicas_exits_with_0_when_they_have_the_job)
{
    static const char *const at_once[] = {"--repl-diskless-sync-delay", "0", NULL};
    struct server *master = server_start_tcp(at_once);
    char port[16];

    setenv("LAPSE_URL", master->tcp_url, 1);
    snprintf(port, sizeof port, "%d", master->port);

    const char *args[] = {"--replicaof", "127.0.0.1", port, NULL};
    struct server *replica = server_start_opts(args);
    redis_do(master, "SET other x");
    cr_assert_eq(redis_int(master, "WAIT 1 10000"), 1);
    expect(lapse("-o", "replicas_ms=10s", "schedule", "q", "--id", "i", "--in", "1h", "--replicas",
                 "1"),
           0, "\"created\":true,\"replicas\":1}", NULL);
    cr_assert_eq(redis_int(replica, "HEXISTS lapse:{q}:jobs i"), 1);
    server_stop(replica);
    server_stop(master);
}

Test(schedule, for_replicas_that_there_are_not_stores_the_job_and_exits_with_69)
{
    struct server *s = tool_redis();

    expect(lapse("-o", "replicas_ms=50ms", "schedule", "q", "--id", "i", "--in", "1h", "--replicas",
                 "1"),
           69, "\"created\":true,\"replicas\":0}",
           "q/i: done, but too few copies have it: written, but 0 of 1 replicas have it after 50 "
           "ms");
    expect(lapse("-o", "replicas_ms=50ms", "schedule", "q", "--id", "i", "--in", "1h", "--replicas",
                 "1", "--on-conflict", "keep"),
           69, "\"created\":false,\"replicas\":0}", "0 of 1 replicas");
    expect(lapse("cancel", "q", "i"), 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(schedule, with_fsync_needs_a_redis_that_knows_waitaof)
{
    struct server *s = tool_redis();
    redisReply *known = redis_cmd(s, "COMMAND INFO WAITAOF");
    bool has_waitaof = known->element[0]->type == REDIS_REPLY_ARRAY;

    freeReplyObject(known);
    redis_do(s, "CONFIG SET appendfsync always");

    struct proc *p =
        lapse("-o", "replicas_ms=10s", "schedule", "q", "--id", "i", "--in", "1h", "--fsync");
    if (has_waitaof) {
        expect(p, 0, "\"replicas\":0}", NULL);
        expect(lapse("cancel", "q", "i"), 0, NULL, NULL);
    } else {
        expect(p, 69, "", "q/i: Redis refused WAITAOF: it does not know it; Redis 7.2");
    }
    no_jobs(s, "q");
    server_stop(s);
}

Test(schedule, takes_any_bytes_and_get_gives_them_back)
{
    struct server *s = tool_redis();

    expect(shell("printf 'a\\000\\377b' | $lapse schedule q --id bin --in 1h -"), 0, NULL, NULL);
    expect(lapse("get", "q", "bin"), 0, "\"body_base64\":\"YQD/Yg==\"", NULL);
    expect(lapse("schedule", "q", "--id", "text", "--in", "1h", "\xc3\xa9\"\\\n\x01/"), 0, NULL,
           NULL);
    expect(lapse("get", "q", "text"), 0, "\"body\":\"\xc3\xa9\\\"\\\\\\n\\u0001/\"", NULL);
    expect(lapse("schedule", "q", "--id", "overlong", "--in", "1h", "\xc0\xaf"), 0, NULL, NULL);
    expect(lapse("get", "q", "overlong"), 0, "\"body_base64\":\"wK8=\"", NULL);
    expect(lapse("schedule", "q", "--id", "none", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("get", "q", "none"), 0, "\"body\":\"\"", NULL);
    server_stop(s);
}

Test(ids, of_any_letters_are_kept_byte_for_byte)
{
    struct server *s = tool_redis();

    for (int i = 0; i < ODD; i++) {
        expect(lapse("schedule", "--in", "1h", "--id", odd_ids[i], "--", "q", odd_ids[i]), 0, NULL,
               NULL);
        char *score = redis_str(s, "ZSCORE lapse:{q}:due %s", odd_ids[i]);
        cr_assert(score, "%s", odd_ids[i]);
        free(score);
        struct proc *p = lapse("get", "--format", "text", "--", "q", odd_ids[i]);
        char lines[600];
        snprintf(lines, sizeof lines, "id      %s\n", odd_ids[i]);
        cr_assert(has(p, lines), "%s", p->out);
        expect(p, 0, NULL, NULL);
    }

    struct proc *p = lapse("list", "q");
    cr_assert_eq(count_of(p->out, "\n"), ODD);
    cr_assert(has(p, "\"id\":\"$(x)\"") && has(p, "\"id\":\"\\\"'\\\\\"") &&
                  has(p, "\"body\":\"%s%n\""),
              "%s", p->out);
    proc_free(p);
    for (int i = 0; i < ODD; i++) {
        expect(lapse("cancel", "--", "q", odd_ids[i]), 0, "\"state\":\"cancelled\"", NULL);
    }

    no_jobs(s, "q");
    server_stop(s);
}

Test(cancel, prints_what_is_gone_and_says_no_to_what_is_not_there)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h"), 0, NULL, NULL);
    struct proc *p = lapse("cancel", "q", "i");
    cr_assert_str_eq(p->out, "{\"queue\":\"q\",\"id\":\"i\",\"state\":\"cancelled\"}\n");
    expect(p, 0, NULL, NULL);
    p = lapse("cancel", "q", "i");
    cr_assert_eq(p->out_len, 0);
    expect(p, 1, NULL, "q/i: no such job");
    no_jobs(s, "q");
    server_stop(s);
}

/* How many bytes went to clients once this one has succeeded. */
static long bytes_after(struct proxy *wire, struct proc *p)
{
    expect(p, 0, NULL, NULL);
    return proxy_bytes(wire, PROXY_DOWN);
}

/* Of the answer to what a command has counted, which comes behind its own. */
enum { COUNTED = sizeof "*2\r\n:1764115200000000\r\n:90\r\n" - 1, NOT_COUNTED = 0 };

/* The next run of this command is cut off within its answer, behind which so many bytes come: after
 * all before these but the last three. How many come before the answer depends on the login. */
#define lose_the_answer(wire, behind, ...)                                     \
    do {                                                                       \
        long before = proxy_bytes(wire, PROXY_DOWN);                           \
        long after = bytes_after(wire, lapse("-u", (wire)->url, __VA_ARGS__)); \
        proxy_cut_after(wire, PROXY_DOWN, after - before - (behind)-3);        \
    } while (0)

Test(get, whose_answer_was_lost_is_asked_again_while_there_is_patience)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h"), 0, NULL, NULL);
    struct proxy *wire = proxy_start(s);
    lose_the_answer(wire, NOT_COUNTED, "get", "q", "i");
    expect(lapse("-u", wire->url, "get", "q", "i"), 69, "", "changes nothing and can be repeated");
    lose_the_answer(wire, NOT_COUNTED, "get", "q", "i");
    expect(lapse("-u", wire->url, "get", "q", "i", "--connect-wait", "1h"), 0, "\"id\":\"i\"",
           NULL);
    cr_assert_eq(proxy_cut_left(wire, PROXY_DOWN), -1);

    /* but no schedule is: there might be two jobs */
    lose_the_answer(wire, COUNTED, "schedule", "q", "--in", "1h");
    struct proc *p = lapse("-u", wire->url, "schedule", "q", "--in", "1h", "--connect-wait", "1h");
    expect(p, 69, "", "it may have been scheduled");
    cr_assert_eq(redis_int(s, "HLEN lapse:{q}:jobs"), 3);
    proxy_stop(wire);
    server_stop(s);
}

Test(cancel, whose_answer_was_lost_says_what_a_repeat_tells_and_what_it_cannot)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("schedule", "r", "--id", "i", "--in", "1h"), 0, NULL, NULL);
    struct proxy *wire = proxy_start(s);
    lose_the_answer(wire, COUNTED, "cancel", "r", "i");
    struct proc *p = lapse("-u", wire->url, "cancel", "q", "i");
    cr_expect(!strstr(p->err, "get tells"), "%s", p->err);
    expect(
        p, 69, "",
        "Repeat the command: if there is no such job then, it was cancelled or has run, and only "
        "your own records");
    expect(lapse("-u", wire->url, "cancel", "q", "i"), 1, "", "no such job");
    proxy_stop(wire);
    server_stop(s);
}

Test(schedule, whose_answer_was_lost_can_be_repeated_if_it_named_its_id)
{
    struct server *s = tool_redis();
    struct proxy *wire = proxy_start(s);

    lose_the_answer(wire, COUNTED, "schedule", "r", "--id", "i", "--in", "1h");
    expect(lapse("-u", wire->url, "schedule", "q", "--id", "i", "--in", "1h"), 69, "",
           "--on-conflict keep");
    expect(
        lapse("-u", wire->url, "schedule", "q", "--id", "i", "--in", "1h", "--on-conflict", "keep"),
        0, "\"created\":false", NULL);
    lose_the_answer(wire, COUNTED, "schedule", "r", "--in", "1h");
    expect(lapse("-u", wire->url, "schedule", "q", "--in", "1h"), 69, "",
           "with --id it could be repeated");
    lose_the_answer(wire, NOT_COUNTED, "get", "r", "i");
    expect(lapse("-u", wire->url, "get", "q", "i"), 69, "", "the command changes nothing");
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 2);
    proxy_stop(wire);
    server_stop(s);
}

Test(reschedule, moves_the_due_time_both_ways)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "x"), 0, NULL, NULL);
    struct proc *p = lapse("reschedule", "q", "i", "--in", "2h");
    long long due = member(p->out, "due_ms");
    expect(p, 0, "\"state\":\"waiting\"", NULL);
    p = lapse("reschedule", "q", "i", "--in", "1m");
    cr_assert(member(p->out, "due_ms") < due - 3600000);
    expect(p, 0, NULL, NULL);
    expect(lapse("get", "q", "i"), 0, "\"body\":\"x\"", NULL);
    expect(lapse("reschedule", "q", "other", "--in", "1m"), 1, "", "q/other: no such job");
    server_stop(s);
}

Test(running, job_is_left_alone)
{
    struct server *s = tool_redis();
    struct proc *l = lapse_start("listen", "q", "--exec", "--", "sleep", "60");

    expect(lapse("schedule", "q", "--id", "i", "--in", "0s"), 0, NULL, NULL);
    until_depth(s, "q", "run", 1);
    expect(lapse("cancel", "q", "i"), 1, "", "q/i: the job is running");
    expect(lapse("reschedule", "q", "i", "--in", "1s"), 1, "", "q/i: the job is running");
    expect(lapse("kill", "q", "i"), 1, "", "q/i: the job is running");
    expect(lapse("schedule", "q", "--id", "i", "--in", "1s", "--on-conflict", "replace"), 1, "",
           "q/i: the job is running");

    struct proc *p = lapse("get", "q", "i");
    cr_assert(member(p->out, "until_ms") > redis_now_ms(s) && member(p->out, "try") == 1 &&
              member(p->out, "token") > 0);
    expect(p, 0, "\"state\":\"running\"", NULL);
    expect(lapse("list", "q", "--state", "running"), 0, "\"id\":\"i\"", NULL);
    expect(lapse("depth", "q"), 0, "\"running\":1", NULL);
    proc_signal(l, SIGTERM);
    proc_signal(l, SIGTERM);
    proc_wait(l, PROC_WAIT_MS);
    proc_free(l);
    server_stop(s);
}

Test(list, shows_all_pages_in_order_and_obeys_state_and_limit)
{
    static const char script[] = "for i = 0, 129 do local id = string.format('job-%03d', i) "
                                 "redis.call('ZADD', KEYS[1], ARGV[1] + i * 37 % 130, id) "
                                 "redis.call('HSET', KEYS[2], id, '\\1\\0') end";
    struct server *s = tool_redis();

    redis_do(s, "EVAL %s 2 lapse:{q}:due lapse:{q}:jobs %lld", script,
             (long long)redis_now_ms(s) + 3600000);
    struct proc *p = lapse("list", "q");
    cr_assert_eq(count_of(p->out, "\"state\":\"waiting\""), 130);

    long long last = 0;
    for (const char *at = p->out; *at; at = strchr(at, '\n') + 1) {
        cr_assert(member(at, "due_ms") >= last);
        last = member(at, "due_ms");
    }

    for (int i = 0; i < 130; i++) {
        char id[20];
        snprintf(id, sizeof id, "\"job-%03d\"", i);
        cr_assert_eq(count_of(p->out, id), 1, "%s", id);
    }

    expect(p, 0, NULL, NULL);
    p = lapse("list", "q", "--limit", "101");
    cr_assert_eq(count_of(p->out, "\n"), 101);
    expect(p, 0, NULL, NULL);
    p = lapse("list", "q", "--state", "dead");
    cr_assert_eq(p->out_len, 0);
    expect(p, 0, NULL, NULL);
    p = lapse("list", "q", "--limit", "2", "--format", "text");
    cr_assert_eq(count_of(p->out, "\n"), 3);
    expect(p, 0, "ID ", NULL);
    server_stop(s);
}

Test(list, of_a_record_that_cannot_be_read_says_so)
{
    static const char error[] = "stored data is in a format this version cannot read";
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "good", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "newer", "--in", "2h"), 0, NULL, NULL);
    redis_do(s, "HSET lapse:{q}:jobs newer %b", "\2\0x", (size_t)3);
    struct proc *p = lapse("list", "q");
    cr_assert(strstr(strchr(p->out, '\n'), error) && count_of(p->out, error) == 1, "%s", p->out);
    expect(p, 0, "\"id\":\"newer\",\"state\":\"waiting\"", NULL);
    expect(lapse("list", "q", "--format", "text"), 0, error, NULL);
    expect(lapse("get", "q", "newer"), 70, NULL, error);
    server_stop(s);
}

Test(depth, counts_each_queue_on_a_line)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "a", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("schedule", "a", "--in", "1h"), 0, NULL, NULL);

    struct proc *p = lapse("depth", "b", "a");
    cr_assert_str_eq(
        p->out,
        "{\"queue\":\"b\",\"waiting\":0,\"running\":0,\"dead\":0,\"late_ms\":0,\"kept\":0}\n"
        "{\"queue\":\"a\",\"waiting\":2,\"running\":0,\"dead\":0,\"late_ms\":0,\"kept\":0}\n");
    expect(p, 0, NULL, NULL);
    p = lapse("depth", "a", "--format", "text");
    cr_assert_eq(count_of(p->out, "\n"), 2);
    expect(p, 0, "QUEUE", NULL);
    server_stop(s);
}

Test(queues, are_those_that_were_scheduled_to_with_depth_and_settings)
{
    struct server *s = tool_redis();

    expect(lapse("queues"), 0, NULL, NULL);
    expect(lapse("schedule", "mail.a", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("schedule", "log", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("configure", "mail.a", "rate=5/1s"), 0, NULL, NULL);

    struct proc *p = lapse("queues");
    cr_assert_str_eq(p->out,
                     "{\"queue\":\"log\",\"waiting\":1,\"running\":0,\"dead\":0,\"late_ms\":0,"
                     "\"kept\":0}\n"
                     "{\"queue\":\"mail.a\",\"waiting\":1,\"running\":0,\"dead\":0,"
                     "\"late_ms\":0,\"kept\":0,\"rate\":\"5/1s\"}\n");
    expect(p, 0, NULL, NULL);
    p = lapse("queues", "mail.*", "--format", "text");
    cr_assert_eq(count_of(p->out, "\n"), 3);
    expect(p, 0, "  mail.a\n", NULL);
    expect(lapse("queues", "mail.*", "--format", "text"), 0, "  rate=5/1s\n", NULL);
    expect(lapse("queues", "m*l"), 2, NULL, "must be 1 to 64 of A-Z a-z 0-9 . _ -");
    expect(lapse("queues", "*"), 0, "\"log\"", NULL);
    server_stop(s);
}

Test(remove, of_a_queue_that_is_held_is_refused_but_by_force)
{
    struct server *s = tool_redis();

    expect(lapse("remove", "q"), 0, "{\"queue\":\"q\",\"removed\":0}\n", NULL);
    expect(lapse("schedule", "q", "--id", "a", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "b", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("claim", "q"), 0, "\"a\"", NULL);
    expect(lapse("listeners", "q"), 0,
           "\"since_ms\":0,\"member\":false,\"held\":1,\"told\":\"go on\"}\n", NULL);
    expect(lapse("listeners", "q", "--format", "text"), 0, "NAME\n         1  -", NULL);
    expect(lapse("remove", "q"), 1, NULL,
           "q: it has listeners, or jobs that run (1): `lapse listeners` shows them; stop them, or "
           "use --force");
    expect(lapse("depth", "q"), 0, "\"waiting\":1,\"running\":1", NULL);
    expect(lapse("remove", "q", "--force", "--format", "text"), 0, "q removed, with 2 jobs\n",
           NULL);
    expect(lapse("queues"), 0, NULL, NULL);
    expect(lapse("remove", "q*"), 2, NULL, "must be 1 to 64 of A-Z a-z 0-9 . _ -");
    cr_assert_eq(redis_int(s, "DBSIZE"), 0);
    server_stop(s);
}

Test(text, shows_no_byte_that_a_terminal_obeys)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "0s", "\033[2J\r\n\x7f"), 0, NULL, NULL);
    struct proc *p = lapse("get", "q", "i", "--format", "text");
    struct proc *l = lapse("listen", "q", "--count", "1", "--format", "text");
    cr_assert(!has(p, "\033") && !has(p, "\r") && has(p, "\\x1b[2J\\x0d"), "%s", p->out);
    cr_assert(!has(l, "\033") && has(l, "\\x1b[2J"), "%s", l->out);
    expect(p, 0, NULL, NULL);
    expect(l, 0, "q/i due ", NULL);
    server_stop(s);
}

/* Its first page fills the pipe's buffer: head is gone when the second is written. */
Test(text, shows_other_languages)
{
    static const char words[] =
        "caf\xc3\xa9 \xd0\xb4\xd0\xb0 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x8e\x89";
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "0s", words), 0, NULL, NULL);
    expect(lapse("get", "q", "i", "--format", "text"), 0, words, NULL);
    expect(lapse("listen", "q", "--count", "1", "--format", "text"), 0, words, NULL);
    server_stop(s);
}

/* What a job's reason is; other programs may have put it there. */
static void with_reason(struct server *s, const char *reason, size_t len)
{
    redis_do(s, "HSET lapse:{q}:attempts i %b", reason, len);
}

Test(text, of_a_reason_shows_what_it_says_and_nothing_that_a_terminal_obeys)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "0s", "--backoff", "1h"), 0, NULL, NULL);
    expect(lapse("listen", "q", "--count", "1", "--exec", "--", "false"), 0, NULL, NULL);

    char *held = redis_str(s, "HGET lapse:{q}:attempts i");
    char record[400];
    char *at = strstr(held, "exit status 1");
    cr_assert(at, "%s", held);

    static const char reason[] =
        "\xe6\x97\xa5 \xc2\x9b\x33\x31m \xe2\x80\xae \x1b[2J \xff \xe6\x97";
    int n = snprintf(record, sizeof record, "%.*s%s", (int)(at - held), held, reason);
    with_reason(s, record, (size_t)n);

    static const char *const lines[] = {"get q i --format text", "list q --format text"};
    for (size_t i = 0; i < 2; i++) {
        char line[80];
        snprintf(line, sizeof line, "$lapse %s", lines[i]);
        expect(shell(line), 0,
               "\xe6\x97\xa5 \\u009b31m \\u202e \\x1b[2J \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\n",
               NULL);
    }

    expect(lapse("get", "q", "i"), 0,
           "\"reason\":\"\xe6\x97\xa5 \\u009b31m \\u202e \\u001b[2J \xef\xbf\xbd "
           "\xef\xbf\xbd\xef\xbf\xbd\"",
           NULL);
    free(held);
    server_stop(s);
}

Test(text, keeps_its_columns_whatever_the_length_of_ids_and_names)
{
    enum { LONG = 64 };
    struct server *s = tool_redis();
    char name[LONG + 1] = "";

    memset(name, 'x', LONG);
    expect(lapse("schedule", name, "--id", name, "--in", "1h"), 0, NULL, NULL);
    expect(lapse("schedule", name, "--id", "short", "--in", "2h"), 0, NULL, NULL);

    struct proc *list = lapse("list", name, "--format", "text");
    struct proc *depth = lapse("depth", name, "q", "--format", "text");
    for (char *line = list->out; *line; line = strchr(line, '\n') + 1) {
        cr_expect(strncmp(line + 9, "DUE", 3) == 0 || (line[8] == ' ' && line[32] == 'Z'), "%s",
                  line);
    }

    for (char *line = depth->out; *line; line = strchr(line, '\n') + 1) {
        cr_expect(strncmp(line + 3, "WAITING", 7) == 0 || line[9] == '0' || line[9] == '2', "%s",
                  line);
    }

    expect(list, 0, name, NULL);
    expect(depth, 0, name, NULL);
    server_stop(s);
}

Test(output, that_its_reader_does_not_want_ends_in_silence_with_141)
{
    struct server *s = tool_redis();

    redis_do(s, "EVAL %s 0",
             "for i = 1, 3000 do redis.call('ZADD', 'lapse:{q}:due', 9e12, i) redis.call('HSET', "
             "'lapse:{q}:jobs', i, '\\1\\0' .. string.rep('x', 1000)) end");

    static const char *const lines[] = {"$lapse list q", "$lapse list q --format text"};
    for (size_t i = 0; i < 2; i++) {
        char line[200];
        snprintf(line, sizeof line, "{ %s; echo $? >&2; } | head -n 1", lines[i]);
        struct proc *p = shell(line);
        cr_expect_str_eq(p->err, "141\n");
        expect(p, 0, NULL, NULL);
    }

    /* of a queue it would say how far it is, where the machine stands still for a second */
    redis_do(s, "FLUSHALL");
    struct proc *p = shell("{ $lapse doctor; echo $? >&2; } | exec 0<&-");
    cr_expect_str_eq(p->err, "141\n");
    expect(p, 0, NULL, NULL);
    server_stop(s);
}

Test(output, that_cannot_be_written_exits_74)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h"), 0, NULL, NULL);
    expect(shell("$lapse get q i > /dev/full"), 74, NULL, "stdout: No space left");
    expect(shell("$lapse get q i >&-"), 74, NULL, "stdout: Bad file");
    expect(shell("$lapse list q > /dev/full"), 74, NULL, "stdout: ");
    expect(shell("$lapse get q i <&- 2>&- | cat"), 0, "\"id\":\"i\"", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(kill, makes_a_waiting_job_dead_with_its_reason_and_says_the_same_again)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h", "x"), 0, NULL, NULL);
    struct proc *p = lapse("kill", "q", "i", "--reason", "no customer");
    struct proc *again = lapse("kill", "q", "i", "--reason", "other");
    cr_assert_str_eq(p->out, again->out);
    cr_assert(has(p, "\"reason\":\"no customer\"") && !has(p, "body"), "%s", p->out);
    expect(p, 0, "\"state\":\"dead\"", NULL);
    expect(again, 0, NULL, NULL);
    expect(lapse("kill", "q", "other"), 1, "", "q/other: no such job");
    expect(lapse("kill", "q", "i", "--format", "text"), 0, "dead", NULL);
    expect(lapse("get", "q", "i"), 0, "\"body\":\"x\"", NULL);
    server_stop(s);
}

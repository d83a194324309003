/* SPDX-License-Identifier: MIT */
/* What goes wrong in Redis: a refusal has changed nothing, and an error after the first write says
 * so. */
#include "script.h"

SCRIPTS(refuse);

/* A call of each script that uses all it can, in the situation below. */
static const struct {
    const char *name, *args;   /* for everything_for() */
    const char *types;         /* keys that must be of the right type */
    const char *first, *later; /* write commands */
    bool needs_memory;
} call[] = {
    {"schedule", "0 new +5 0 " REC " w +0 2 " REC " e +5 2 " REC " d +5 2 " REC,
     "due run dead jobs attempts", "zadd", "hset zrem hdel set del", true},
    {"schedule", "tags=1; 0 tn +5 0 " TAG_A " tw +5 2 " REC, "due jobs attempts index", "zadd",
     "hset zrem hdel set", true},
    {"schedule", "marks; 0 r +5 3 " TAG_A " put +5 5 " REC, "due run jobs attempts next index",
     "zadd", "hset", true},
    {"schedule", "ended; 0 put +5 3 " REC, "due run jobs attempts next report", "zadd",
     "zrem hdel hset set", true},
    {"schedule", "errors=1; 0 tn +5 0 " TAG_A " fw +5 2 " REC, "due jobs attempts errors index",
     "zadd", "hset zrem hdel set", true},
    {"cancel", "errors=1; 0 fw 0", "due jobs attempts errors index", "zrem", "hdel del", false},
    {"reschedule", "errors=1; 0 fd +5 0", "due run dead jobs attempts errors", "zadd",
     "zrem hdel set", true},
    {"kill", "errors=1; 0 fe x", "due run dead jobs attempts next errors", "zrem",
     "zadd hdel hset del", false},
    {"get", "errors=1; 0 fw", "due jobs attempts errors", "", "", false},
    {"claim", "errors=1; 0 me 10 100", "due run dead jobs attempts errors seq", "zrem",
     "zadd hset hdel set del", false},
    {"done", "errors=1; 0 me fr 21", "run jobs attempts errors", "zrem", "hdel", false},
    {"retry", "errors=1; 0 me fr 21 5 x", "due run dead attempts errors", "zrem", "zadd hset set",
     false},
    {"fail", "errors=1; 0 me ff 22 x", "run dead attempts errors", "zrem", "zadd hset", false},
    {"release", "errors=1; 0 me fm 23", "due run dead jobs attempts errors", "zrem", "hdel", false},
    {"sweep", "errors=1; 0", "due run dead kept jobs attempts next errors", "zrem",
     "zadd hset hdel set", false},
    {"list", "errors=1; 0 1 10 '' ''", "due jobs attempts errors", "", "", false},
    {"mend", "errors=1; 0 gone", "due run dead kept jobs attempts next report errors index batches",
     "hdel", "", false},
    {"mend", "batch=1; 0 'b oz gone'",
     "due run dead kept jobs attempts next report errors index batches", "zrem",
     "hset hdel zadd del", false},
    {"batch_close", "batch=1; 0 ox oy", "due jobs attempts index batches", "hset", "zadd hdel del",
     true},
    {"batch_get", "batch=1; 0 ox ''", "due run dead index batches", "", "", false},
    {"cancel", "batch=1; 0 bw 0", "due jobs attempts index batches", "zrem", "hset hdel zadd del",
     false},
    {"schedule", "batch=1; 0 bw +5 2 " REC, "due jobs attempts index batches", "zadd",
     "hset hdel zrem set del", true},
    {"kill", "batch=1; 0 bn x", "due run dead jobs attempts next index batches", "zrem",
     "hset hdel zadd del", false},
    {"reschedule", "batch=1; 0 bn +5 0", "due run jobs attempts next index batches", "zadd",
     "hset hdel zrem set del", true},
    {"claim", "batch=1; 0 me 10 100", "due run dead jobs attempts seq index batches", "zrem",
     "set zadd hset hdel del", false},
    {"claim", "forward=list:s:{q}:list batch=1; 0 me 10 100",
     "due run dead jobs attempts seq index batches", "lpush", "zrem set zadd hset hdel del", true},
    {"done", "batch=1; 0 me br U+20001", "due run jobs attempts index batches", "zrem",
     "hset hdel zadd del", false},
    {"retry", "batch=1; 0 me bc U+20002 5 x", "due run dead jobs attempts index batches", "zrem",
     "hset hdel zadd del", false},
    {"sweep", "batch=1; 0", "due run dead kept jobs attempts next index batches", "zrem",
     "zadd hset hdel set del", false},
    {"cancel", "marks; 0 put 1", "due run jobs attempts next", "hdel", "hset", false},
    {"cancel", "ended; 0 put 0", "due run jobs attempts next index report", "zrem", "hdel del",
     false},
    {"reschedule", "ended; 0 w +0 0 put +5 0", "due run jobs attempts next report", "zadd",
     "zrem hdel hset set del", true},
    {"kill", "ended; 0 put x", "due run dead jobs attempts next report", "zrem",
     "hset hdel zadd del", false},
    {"get", "ended; 0 put", "due run jobs attempts next report", "", "", false},
    {"cancel", "0 w 0 e 0 d 0", "due run dead jobs attempts", "zrem", "hdel del", false},
    {"cancel", "tags=1; 0 tw 0", "due jobs attempts index", "zrem", "hdel del", false},
    {"cancel", "0 w 0 r 1", "due run jobs attempts", "zrem", "hdel hset del", false},
    {"cancel", "0 r 1", "due run jobs attempts", "hdel", "hset", false},
    {"reschedule", "0 w +0 0 e +5 0 d +5 0", "due run dead jobs attempts", "zadd",
     "zrem hdel set del", true},
    {"reschedule", "0 r +5 1", "due run jobs attempts", "hset", "", true},
    {"gather", "groups=1; 0 gn " GROUP " a gw " GROUP " b gf " GROUP " c gr " GROUP " d",
     "due run dead kept jobs attempts seq index report errors", "zadd",
     "hset zrem hdel del rpush set", true},
    {"schedule", "groups=1; 0 gw +5 2 " REC, "due jobs attempts", "zadd", "hset hdel del set",
     true},
    {"cancel", "groups=1; 0 gw 0 gk 0", "due run dead jobs attempts index", "zrem", "hdel del",
     false},
    {"claim", "groups=1; 0 me 10 100", "due run dead jobs attempts seq index", "zrem",
     "set zadd hset hdel del", false},
    {"claim", "forward=stream:s:{q}:stream groups=1; 0 me 10 100",
     "due run dead jobs attempts seq stream index", "xadd", "zrem set zadd hset hdel del", true},
    {"sweep", "dead_max=0 groups=1; 0", "due run dead kept jobs attempts", "zrem",
     "zadd hset hdel del", false},
    {"schedule", "unique=1; 0 un +5 5:9 " LAST_U "w", "due jobs attempts index", "zadd",
     "hset hdel set", true},
    {"reschedule", "unique=1; 0 ud +5 0", "due run dead jobs attempts index", "zadd",
     "zrem hdel set", true},
    {"kill", "unique=1; 0 uw x", "due dead jobs attempts index", "zrem", "zadd hset del", false},
    {"kill", "0 w x e x d x", "due run dead jobs attempts", "zrem", "zadd hset del", false},
    {"kill_all", "0 1 '' '' 0 100 '' 0 x", "due run dead jobs attempts seq", "zrem",
     "zadd hset del", false},
    {"cancel_all", "0 1 '' '' 0 100 '' 0", "due run jobs attempts seq", "zrem", "hdel del", false},
    {"cancel_all", "0 3 '' '' 0 100 '' 0", "run dead jobs attempts seq", "zrem", "hdel del", false},
    {"cancel_all", "0 2 '' '' 0 100 '' 0", "run attempts seq", "", "", false},
    {"cancel_all", "0 2 '' '' 0 100 '' 1", "run attempts seq", "hdel", "hset", false},
    {"cancel_all", "tags=1; 0 0 a '' 0 100 '' 1", "due run dead jobs attempts seq index", "zrem",
     "hdel hset del", false},
    {"reschedule_all", "tags=1; 0 0 a '' 0 100 '' 1 +5 0", "due run dead jobs attempts seq index",
     "zadd", "zrem hdel hset set", true},
    {"reschedule_all", "0 1 '' '' 0 100 '' 0 +5 0", "due run jobs attempts seq", "zadd", "zrem set",
     true},
    {"reschedule_all", "0 3 '' '' 0 100 '' 0 +5 0", "due run dead jobs attempts seq", "zadd",
     "zrem hdel set", true},
    {"reschedule_all", "0 2 '' '' 0 100 '' 1 +5 0", "due run attempts seq", "hset", "", true},
    {"done", "marks; 0 me r U+3 stop 11 tagged 14 again 12 put 15",
     "due run jobs attempts next index report", "zrem", "hdel hset zadd set", false},
    {"retry", "marks; 0 me stop 11 5 x tagged 14 5 x again 12 5 x put 15 5 x",
     "due run dead jobs attempts next index report", "zrem", "zadd hdel hset set", false},
    {"fail", "marks; 0 me r U+3 x stop 11 x tagged 14 x again 12 x put 15 x",
     "due run dead jobs attempts next index report", "zrem", "zadd hset hdel set", false},
    {"release", "marks; 0 me r U+3 stop 11 tagged 14 again 12 put 15",
     "due run dead jobs attempts next index report", "zrem", "zadd hset hdel set", false},
    {"sweep", "ended; 0", "due run dead kept jobs attempts next index report", "zrem",
     "zadd hset hdel set", false},
    {"claim", "marks; 0 me 10 100", "due run dead jobs attempts seq report", "zrem",
     "hdel set zadd hset del", false},
    {"reschedule_all", "unique=1; 0 3 '' '' 0 100 '' 0 +5 0",
     "due run dead jobs attempts next seq index", "zadd", "zrem hdel set", true},
    {"get", "0 w e d", "due run dead jobs attempts", "", "", false},
    {"claim", "0 me 10 100", "due run dead jobs attempts seq", "zrem", "set zadd hset hdel del",
     false},
    {"claim", "unique=1; 0 me 10 100", "due run dead jobs attempts seq index", "zrem",
     "set zadd hset hdel del", false},
    {"claim", "0 me 10 0 x y m", "due run dead jobs attempts seq", "zrem", "set zadd hset hdel",
     false},
    {"claim", "forward=list:s:{q}:list tags=1; 0 me 10 100", "due run dead jobs attempts seq index",
     "lpush", "zrem set zadd hset hdel del", true},
    {"claim", "rate=5/1s max_running=3; 0 me 10 100", "due run dead jobs attempts seq", "zrem",
     "set zadd hset hdel rpush ltrim del", false},
    {"claim", "max_running=1; 0 me 10 100", "due run dead attempts seq", "hdel", "hset", false},
    {"claim", "forward=list:s:{q}:list rate=5/1s; 0 me 10 100", "due run dead jobs attempts seq",
     "lpush", "zrem set zadd hset hdel del rpush ltrim", true},
    {"touch", "rate=5/1s; 0 me 10 100 0 0 1 1 24", "due run dead jobs attempts seq", "zrem",
     "set zadd hset hdel del rpush ltrim", false},
    {"done", "0 me r U+3", "run jobs attempts", "zrem", "hdel", false},
    {"done", "met=1; 0 me r U+3", "run jobs attempts", "zrem", "hdel", false},
    {"fail", "met=1; 0 me r U+3 x", "run dead attempts", "zrem", "zadd hset hdel", false},
    {"release", "met=1; 0 me r U+3", "due run dead attempts", "zrem", "zadd hset hdel", false},
    {"retry", "met=1; 0 me r U+3 5 x", "due run dead attempts", "zrem", "zadd hset hdel set",
     false},
    {"sweep", "max_running=1 met=1; 0", "due run dead kept jobs attempts", "zrem", "zadd hset hdel",
     false},
    {"configure", "rate=5/1s; 0 rate=", "conf", "del", "", false},
    {"done", "tags=1; 0 me tr U+20001", "run jobs attempts index", "zrem", "hdel", false},
    {"retry", "0 me r U+3 5 x u U+2 5 x", "due run dead attempts", "zrem", "zadd hset set", false},
    {"retry", "0 me r U+3 '' x", "due run dead jobs attempts", "zrem", "zadd hset set", false},
    {"retry", "unique=1; 0 me ur U+20001 5 x", "due run dead jobs attempts index", "zrem",
     "zadd hset", false},
    {"fail", "unique=1; 0 me ur U+20001 x", "run dead jobs attempts index", "zrem", "zadd hset",
     false},
    {"fail", "0 me r U+3 x", "run dead attempts", "zrem", "zadd hset", false},
    {"release", "0 me r U+3", "due run dead attempts", "zrem", "zadd hset", false},
    {"renew", "0 me r U+3 5", "run attempts", "zrem", "zadd", false},
    {"renew", "met=1; 0 me r U+3 5", "run attempts", "zrem", "zadd", false},
    {"report", "0 me r U+3 text", "run attempts report", "hset", "", true},
    {"touch", "0 me 10 100 0 0 1 1 24", "due run dead jobs attempts seq", "zrem",
     "set zadd hset hdel del", false},
    {"claim", "forward=stream:s:{q}:stream forward_groups=g; 0 me 10 100",
     "due run dead jobs attempts seq stream", "xgroup", "xadd zrem set zadd hset hdel del", true},
    {"claim", "forward=list:s:{q}:list; 0 me 10 100", "due run dead jobs attempts seq", "lpush",
     "zrem set zadd hset hdel del", true},
    {"touch", "forward=stream:s:{q}:stream; 0 - 10 100 0 0 1 1 24",
     "due run dead jobs attempts seq stream", "xadd", "zrem set zadd hset hdel del", true},
    {"trim", "forward=stream:s:{q}:stream entries=1; 0", "conf stream", "xtrim", "", false},
    {"adopt", "forward=stream:s:{q}:stream entries=1 pending=1; 0 h me 0 10 - 0", "conf stream",
     "xautoclaim", "xgroup", false},
    {"arm", "'0 600' 0", "due", "set", "", true},
    {"configure", "0 paused=+5", "conf", "del", "set", false},
    {"configure", "0 'forward=stream forward_groups=h'", "conf", "del", "set xgroup", false},
    {"sweep", "0", "due run dead kept jobs attempts", "zrem", "zadd hset hdel", false},
    {"sweep", "again=1; 0", "due run dead kept jobs attempts", "zrem", "zadd hset hdel set", false},
    {"sweep", "unique=1; 0", "due run dead kept jobs attempts index", "zrem", "zadd hset hdel",
     false},
    {"schedule", "kept=1; 0 ko +5 2 " REC, "due run dead kept jobs attempts", "zadd",
     "zrem hdel hset set", true},
    {"cancel", "kept=1; 0 kw 0 ko 0", "due run dead kept jobs attempts index", "zrem",
     "zadd hset del", false},
    {"cancel_all", "kept=1; 0 1 '' '' 0 100 '' 0", "due run kept jobs attempts seq index", "zrem",
     "zadd hset hdel del", false},
    {"cancel_all", "kept=1; 0 4 '' '' 0 100 '' 0", "kept jobs attempts seq", "zrem", "hdel del",
     false},
    {"reschedule", "kept=1; 0 ko +5 0 w +5 0", "due run dead kept jobs attempts", "zadd", "set",
     true},
    {"kill", "kept=1; 0 ko x", "due run dead kept jobs", "", "", false},
    {"get", "kept=1; 0 ko", "due run dead kept jobs attempts", "", "", false},
    {"claim", "kept=1; 0 me 10 100", "due run dead kept jobs attempts seq", "zrem",
     "set zadd hset hdel del", false},
    {"claim", "forward=list:s:{q}:list kept=1; 0 me 10 100", "due run dead kept jobs attempts seq",
     "lpush", "zrem set zadd hset hdel del", true},
    {"done", "kept=1; 0 me kr U+20001", "run kept jobs attempts index", "zrem", "zadd hset", false},
    {"retry", "kept=1; 0 me kr U+20001 5 x", "due run dead kept jobs attempts index", "zrem",
     "zadd hset", false},
    {"fail", "kept=1; 0 me kr U+20001 x", "run dead kept jobs attempts index", "zrem", "zadd hset",
     false},
    {"release", "kept=1; 0 me kr U+20001", "due run dead kept jobs attempts index", "zrem",
     "zadd hset", false},
    {"sweep", "kept=1; 0", "due run dead kept jobs attempts", "zrem", "zadd hset hdel", false},
    {"list", "kept=1; 0 4 10 '' ''", "kept jobs attempts", "", "", false},
    {"reclaim", "0 me 0", "run attempts", "", "", false},
    {"heartbeat", "0 me 100 0 0", "alive", "zremrangebyscore", "zadd", false},
    {"tell", "0 m 1", "alive", "zrem", "zadd", false},
    {"enter", "0 x", "queues", "zadd", "", true},
    {"names", "0 - + 10", "queues", "", "", false},
    {"forget", "0 x", "queues", "zrem", "", false},
    {"alive", "0", "alive", "", "", false},
    {"listeners", "0 l", "listeners run attempts", "", "", false},
    {"remove", "0 1 l", "listeners run due dead kept jobs attempts next report errors", "zrem",
     "hdel del unlink", false},
    {"join", "0 me 1 x", "listeners", "zrem", "zadd", false},
    {"join", "0 me 0", "listeners", "zrem", "", false},
    {"fence", "0", "", "del", "set", false},
    {"count", "0 a 1 s1", "conf past", "hset", "", true},
    {"history", "0 0 9007199254740992", "past", "", "", false},
    {"depth", "0", "due run dead kept conf", "", "", false},
    {"list", "0 1 10 '' ''", "due jobs attempts", "", "", false},
    {"list", "0 2 10 '' ''", "run jobs attempts", "", "", false},
    {"list", "0 3 10 '' ''", "dead jobs attempts", "", "", false},
    {"list_tag", "tags=1; 0 a 10 ''", "due run dead jobs attempts index", "", "", false},
};
enum { CALLS = sizeof call / sizeof *call };

static bool among(const char *word, const char *words)
{
    size_t len = strlen(word);

    for (const char *at = words; (at = strstr(at, word)); at += len) {
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || !at[len])) {
            return true;
        }
    }
    return false;
}

static void must_be(int i, const char *what, redisReply *r, bool error)
{
    cr_assert_eq(r->type == REDIS_REPLY_ERROR, error, "%s %s, %s: %s", call[i].name, call[i].args,
                 what, show(r));
}

static void unchanged(int i, const char *what, const char *before)
{
    cr_assert(strcmp(dumps(), before) == 0, "%s %s, %s: changed\n%s", call[i].name, call[i].args,
              what, keys());
    cr_assert_str_eq(heard(), "", "%s %s, %s", call[i].name, call[i].args, what);
}

Test(refuse, a_key_of_the_wrong_type_is_refused_before_the_first_write)
{
    static const char *const key[] = {"due",   "run",    "dead",    "jobs", "attempts",
                                      "seq",   "conf",   "stream",  "list", "listeners",
                                      "index", "next",   "report",  "kept", "errors",
                                      "alive", "queues", "batches", "past"};
    static const char to_list[] = "redis.call('DEL', KEYS[1]) redis.call('LPUSH', KEYS[1], 'x')";

    for (int i = 0; i < CALLS; i++) {
        for (size_t k = 0; k < sizeof key / sizeof *key; k++) {
            everything_for(call[i].args);
            bool of_queue = strcmp(key[k], "alive") != 0 && strcmp(key[k], "queues") != 0;
            const char *queue = of_queue ? "q" : "";
            bool refused = among(key[k], call[i].types);
            ask("EVAL %s 1 s:{%s}:%s", to_list, queue, key[k]);
            char *before = refused ? dumps() : NULL;
            redisReply *r = run(call[i].name, call[i].args);
            must_be(i, key[k], r, refused);
            if (refused) {
                cr_assert(strncmp(r->str, "WRONGTYPE ", 10) == 0, "%s", r->str);
                unchanged(i, key[k], before);
            }
        }
    }

    ask("FLUSHALL");
}

/* What ends or gives back must work then, or nothing would ever become free. */
Test(refuse, out_of_memory_is_refused_whole_or_does_not_matter)
{
    for (int i = 0; i < CALLS; i++) {
        everything_for(call[i].args);
        char *before = dumps();
        redis_do(redis, "CONFIG SET maxmemory 1");
        redisReply *r = run(call[i].name, call[i].args);
        redis_do(redis, "CONFIG SET maxmemory 0");
        must_be(i, "out of memory", r, call[i].needs_memory);
        if (call[i].needs_memory) {
            cr_assert(strncmp(r->str, "OOM ", 4) == 0, "%s", r->str);
            unchanged(i, "out of memory", before);
            continue;
        }
        const char *reply = show(r);
        const char *after = keys();
        const char *told = heard();
        everything_for(call[i].args);
        same(__FILE__, __LINE__, call[i].name, reply, show(run(call[i].name, call[i].args)));
        same(__FILE__, __LINE__, call[i].name, after, keys());
        same(__FILE__, __LINE__, call[i].name, told, heard());
    }

    ask("FLUSHALL");
}

/* Each right that is taken has a user, who is made once. */
static void log_in_without(const char *right)
{
    if (ask("AUTH u%s x", right)->type == REDIS_REPLY_ERROR) {
        redis_do(redis, "ACL SETUSER u%s reset on nopass ~* &* +@all %s", right, right);
        redis_do(redis, "AUTH u%s x", right);
    }
}

static redisReply *run_without(int i, const char *right)
{
    everything_for(call[i].args);
    log_in_without(right);
    redisReply *r = run(call[i].name, call[i].args);
    redis_do(redis, "AUTH default x");
    return r;
}

/* Commands that write. */
static const char *const writes[] = {"zadd",  "zrem",   "zremrangebyscore", "hset",  "hdel",
                                     "set",   "del",    "incrby",           "xadd",  "xtrim",
                                     "lpush", "xgroup", "xautoclaim",       "rpush", "ltrim"};

Test(refuse, an_error_at_the_first_write_is_a_no_and_after_it_ebroken)
{
    for (int i = 0; i < CALLS; i++) {
        everything_for(call[i].args);
        char *before = dumps();
        for (size_t k = 0; k < sizeof writes / sizeof *writes; k++) {
            redisReply *r = run_without(i, text("-%s", writes[k]));
            bool first = among(writes[k], call[i].first);
            bool later = among(writes[k], call[i].later);
            must_be(i, writes[k], r, first || later);
            if (first) {
                unchanged(i, writes[k], before);
            }
            if (first || later) {
                cr_assert_eq(strncmp(r->str, "LAPSE EBROKEN ", 14) == 0, later, "%s -%s: %s",
                             call[i].name, writes[k], r->str);
            }
            heard();
        }
    }

    ask("FLUSHALL");
}

static long long n_in_no_set(void)
{
    return redis_int(redis, "EVAL %s 0",
                     "local n = 0 for _, id in ipairs(redis.call('HKEYS', 's:{q}:jobs')) do "
                     "n = n + 1 for _, set in ipairs({'due', 'run', 'dead', 'kept'}) do "
                     "if redis.call('ZSCORE', 's:{q}:' .. set, id) then n = n - 1 break end "
                     "end end return n");
}

/* Such records would make a queue in a cluster look like half of one, and nothing mends them by
 * itself. A member without a record is thrown away when it is claimed. */
Test(refuse, what_begins_with_an_add_never_breaks_off_with_a_record_in_no_set)
{
    int n_broken = 0;

    for (int i = 0; i < CALLS; i++) {
        for (size_t k = 0; k < sizeof writes / sizeof *writes; k++) {
            if (strcmp(call[i].first, "zadd") != 0 || !among(writes[k], call[i].later)) {
                continue;
            }
            everything_for(call[i].args);
            long long n = n_in_no_set();
            run_without(i, text("-%s", writes[k]));
            cr_assert_eq(n_in_no_set(), n, "%s %s -%s", call[i].name, call[i].args, writes[k]);
            heard();
            n_broken++;
        }
    }

    cr_assert_gt(n_broken, 0);
    ask("FLUSHALL");
}

/* By Redis from 7.2 on, in quotes, maybe with a subcommand; for 7.0 by the script, at the end. */
static bool is_named(const char *error, const char *command)
{
    return strcasestr(error, text(": %s", command)) || strcasestr(error, text("'%s'", command)) ||
           strcasestr(error, text("'%s|", command));
}

static void denied(int i, const char *command)
{
    redisReply *r = run_without(i, text("-%s", command));

    must_be(i, command, r, true);
    cr_assert(is_named(r->str, command), "%s -%s: %s", call[i].name, command, r->str);
}

Test(refuse, a_command_that_is_denied_is_named)
{
    for (int i = 0; i < CALLS; i++) {
        for (size_t k = 0; k < sizeof writes / sizeof *writes; k++) {
            if (among(writes[k], call[i].first) || among(writes[k], call[i].later)) {
                denied(i, writes[k]);
            }
        }
    }

    ask("FLUSHALL");
}

#define PCALL_KEEPS_TABLES                                                                     \
    "local caught = pcall local function pcall(f) local ok, r = caught(f) if not ok then r = " \
    "{err = r} end return ok, r end"

/* Redis's pcall makes a text of the table that redis.call throws. */
Test(refuse, an_error_is_answered_where_pcall_leaves_it_a_table_too)
{
    everything();
    ask("DEL s:{q}:due");
    ask("LPUSH s:{q}:due x");
    redis_differs(PCALL_KEEPS_TABLES);
    redisReply *r = run("cancel", "0 w 0");
    cr_assert_eq(r->type, REDIS_REPLY_ERROR);
    cr_assert(strncmp(r->str, "WRONGTYPE ", 10) == 0, "%s", r->str);
    ask("FLUSHALL");
}

Test(refuse, for_another_reason_names_no_right_that_is_missing_too)
{
    everything();
    ask("DEL s:{q}:due");
    ask("LPUSH s:{q}:due x");

    redis_do(redis, "ACL SETUSER u reset on nopass ~* &* +@all -del");
    redis_do(redis, "AUTH u x");
    redisReply *r = run("cancel", "0 w 0");
    redis_do(redis, "AUTH default x");

    cr_assert_eq(r->type, REDIS_REPLY_ERROR);
    cr_assert(strncmp(r->str, "WRONGTYPE ", 10) == 0 && !strstr(r->str, "DEL"), "%s", r->str);
    ask("FLUSHALL");
}

Test(refuse, without_the_right_to_publish_all_works_in_silence)
{
    static const char *const right[] = {"-publish", "resetchannels"};

    for (int i = 0; i < CALLS; i++) {
        for (size_t k = 0; k < 2; k++) {
            char *reply = show(run_without(i, right[k]));
            char *after = keys();
            HEARD("");
            everything_for(call[i].args);
            same(__FILE__, __LINE__, call[i].name, reply, show(run(call[i].name, call[i].args)));
            same(__FILE__, __LINE__, call[i].name, after, keys());
            heard();
        }
    }

    ask("FLUSHALL");
}

Test(refuse, an_error_of_the_script_itself_is_refused_too)
{
    five();
    ask("SET s:{q}:seq one");
    given("schedule", "0 x +0 0 " REC);
    char *before = dumps();
    cr_assert_eq(run("claim", "0 me 10 1")->type, REDIS_REPLY_ERROR);
    cr_assert_eq(run("schedule", "0 n soon 0 " REC)->type, REDIS_REPLY_ERROR);
    cr_assert_eq(run("list", "0 6 1 '' ''")->type, REDIS_REPLY_ERROR);
    same(__FILE__, __LINE__, "keys", dumps(), before);
    HEARD("");
}

/* SPDX-License-Identifier: MIT */
/* The invariant, read raw from Redis: each record is in exactly one state, its tags, its batch and
 * the key that it holds are in the index unless it is kept, a record that follows a run is of a job
 * that runs, a report is of a job that has one, errors are of a job that has had some, parts are of
 * a group, which says how many, a batch that is closed has jobs, what is kept says how it ended,
 * and nothing else lies about. */
#include "audit.h"
#include "redis.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ENTRIES: those that the index should have. ALLOWED: those that it may have, too. NEXT: whose
 * record follows a run; FOLLOWED: whose attempt says that one does; REPORT and REPORTED, ERRORS and
 * FAILED likewise. HOW: whose attempt says how it ended. GROUPS: those that gather parts;
 * MISCOUNTED: those of them that have not as many as they say. */
enum {
    DUE,
    RUN,
    DEAD,
    JOBS,
    ATTEMPTS,
    INDEX,
    ENTRIES,
    ALLOWED,
    NEXT,
    FOLLOWED,
    REPORT,
    REPORTED,
    KEPT,
    HOW,
    ERRORS,
    FAILED,
    GROUPS,
    MISCOUNTED,
    N_SETS
};
static const char *const set_name[N_SETS] = {"due",    "run",      "dead",      "jobs", "attempts",
                                             "index",  "entries",  "allowed",   "next", "followed",
                                             "report", "reported", "kept",      "how",  "errors",
                                             "failed", "groups",   "miscounted"};
static const char *const other_name[] = {"seq",  "conf",      "stream",  "list",
                                         "rate", "listeners", "batches", "past"};

struct queue {
    char prefix[160]; /* space:{queue}: */
    redisReply *all;
    redisReply *set[N_SETS]; /* its elements: ids, sorted */
};

enum { QUEUES_MOST = 16 };

static int defects;
#define DEFECT(...) (defects++, fprintf(stderr, "audit: " __VA_ARGS__), fputc('\n', stderr))

static int by_bytes(const void *a, const void *b)
{
    const redisReply *x = *(redisReply *const *)a;
    const redisReply *y = *(redisReply *const *)b;
    int c = memcmp(x->str, y->str, (size_t)(x->len < y->len ? x->len : y->len));
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

static bool has(const redisReply *set, const redisReply *id)
{
    return set->elements &&
           bsearch(&id, set->element, set->elements, sizeof *set->element, by_bytes);
}

/* What read_queue() asks, in the order of the sets. */
static const char read_all[] =
    "local r = {} for i, k in ipairs({'due', 'run', 'dead'}) do r[i] = redis.pcall('ZRANGE', "
    "KEYS[1] .. k, 0, -1) end for i, k in ipairs({'jobs', 'attempts'}) do r[i + 3] = "
    "redis.pcall('HKEYS', KEYS[1] .. k) end "
    /* a sign of the limits, and of no job */
    "for i = #r[5], 1, -1 do if r[5][i] == '{max_running}' then table.remove(r[5], i) end end "
    "r[6] = redis.pcall('ZRANGE', KEYS[1] .. 'index', "
    "0, -1) r[7], r[8], r[9], r[10] = {}, {}, redis.pcall('HKEYS', KEYS[1] .. 'next'), {} "
    "r[11], r[12] = redis.pcall('HKEYS', KEYS[1] .. 'report'), {} "
    "r[13], r[14] = redis.pcall('ZRANGE', KEYS[1] .. 'kept', 0, -1), {} local function "
    "kept(id) return redis.pcall('ZSCORE', KEYS[1] .. 'kept', id) end "
    "local attempts = redis.pcall('HGETALL', KEYS[1] .. 'attempts') for i = 1, #attempts, 2 do "
    "if "
    "string.find(attempts[i + 1], '^2 %d+ %S+ %d+ %d+ %d+ %d+ %S*j=1') then "
    "table.insert(r[10], "
    "attempts[i]) end if string.find(attempts[i + 1], '^2 %d+ %S+ %d+ %d+ %d+ %d+ %S*e=[1-4]') "
    "then table.insert(r[14], attempts[i]) end "
    "if string.find(attempts[i + 1], '^2 %d+ %S+ %d+ %d+ %d+ %d+ %S*o=1') "
    "then table.insert(r[12], attempts[i]) end end "
    "r[15], r[16], r[17], r[18] = redis.pcall('HKEYS', KEYS[1] .. 'errors'), {}, {}, {} "
    "local function group(id) table.insert(r[17], id) local said = string.match(redis.pcall("
    "'HGET', KEYS[1] .. 'attempts', id) or '', '^2 %d+ %S+ %d+ %d+ %d+ %d+ %S*g=(%d+):') "
    "if redis.pcall('LLEN', KEYS[1] .. 'p:' .. id) ~= tonumber(said) then "
    "table.insert(r[18], id) end end "
    "for i = 1, #attempts, 2 do if string.find(string.match(attempts[i + 1], '^2 %d+ %S+ %d+ "
    "%d+ %d+ %d+ (%S+)') or '', '%f[%a]r=1%f[%D]') then table.insert(r[16], attempts[i]) end "
    "end "
    /* a key is held in due, but for one until start that has been claimed; and in run, where
     * the last lease may have ended unswept: of all tries, of the time for them, or of a run
     * that another record follows */
    "local function key(id, text, follows) if follows then table.insert(r[7], 'u ' .. "
    "string.sub(text, 2) .. ' ' .. id) return end if redis.pcall('ZSCORE', KEYS[1] .. 'dead', "
    "id) or kept(id) then return "
    "end local attempt = redis.pcall('HGET', KEYS[1] .. 'attempts', id) or '' local token, "
    "try, tries = string.match(attempt, '^[12] (%d+) %S+ (%d+) (%d+) ') if string.sub(text, 1, "
    "1) == 's' and (token or '0') ~= '0' then return end local last = string.sub(text, 1, 1) "
    "== 's' or try and (tonumber(try) >= tonumber(tries) or string.find(attempt, "
    "'^2 %d+ %S+ %d+ %d+ %d+ %d+ %S*[fj]=')) and redis.pcall('ZSCORE', KEYS[1] .. 'run', id) "
    "table.insert(last and r[8] or r[7], 'u ' .. string.sub(text, 2) .. ' ' .. id) end "
    /* the tags and the key of each record of form 2: its numbers, then letters, lengths and
     * values. One that cannot be read has no entries: it has too many of them, or its moment no
     * number */
    "for k, hash in ipairs({'jobs', 'next'}) do "
    "local all = redis.pcall('HGETALL', KEYS[1] .. hash) for i = 1, #all, 2 do "
    "local s, at = all[i + 1], 3 local function number() local n, scale = 0, 1 repeat local b "
    "= string.byte(s, at) or 0 n, scale, at = n + b % 128 * scale, scale * 128, at + 1 until "
    "b < 128 return n end if string.byte(s) == 2 then local flags = string.byte(s, 2) or 0 "
    "for _, flag in ipairs({1, 2, 4}) do if bit.band(flags, flag) ~= 0 then number() end end "
    "local size = number() local last = size > 4096 and at or at + size while at < last do "
    "local letter = string.sub(s, at, at) at = at + 1 local len = number() "
    "if letter == 'T' and not kept(all[i]) then "
    "table.insert(r[7], 't ' .. string.sub(s, at, at + len - 1) .. ' ' .. all[i]) end if "
    "letter == 'S' and not kept(all[i]) then table.insert(r[7], 'r ' .. all[i]) end if "
    "letter == 'P' and not kept(all[i]) then group(all[i]) end if "
    "letter == 'B' and not kept(all[i]) then table.insert(r[7], 'b ' .. string.sub(s, at, at + "
    "len - 1) .. ' ' .. all[i]) end if "
    "letter == 'O' and not kept(all[i]) then local maker = string.match(string.sub(s, at, at + "
    "len - 1), '^([^ ]+) [1-9]%d*$') if maker then table.insert(r[7], 's ' .. maker .. ' ' .. "
    "all[i]) end end if letter == 'U' "
    "then key(all[i], string.sub(s, at, at + len - 1), k == 2) end at = at + len end end end "
    "end "
    "return r";

/* At one moment: a job on its way from one set to the next would look lost. */
static void read_queue(struct server *s, struct queue *q)
{
    q->all = redis_cmd(s, "EVAL %s 1 %s", read_all, q->prefix);
    cr_assert(q->all->type == REDIS_REPLY_ARRAY && q->all->elements == N_SETS, "audit: %s",
              q->all->str);

    for (int i = 0; i < N_SETS; i++) {
        q->set[i] = q->all->element[i];
        if (q->set[i]->type != REDIS_REPLY_ARRAY) {
            DEFECT("%s%s: %s", q->prefix, set_name[i],
                   q->set[i]->str ? q->set[i]->str : "not a list");
        } else if (q->set[i]->elements) {
            qsort(q->set[i]->element, q->set[i]->elements, sizeof *q->set[i]->element, by_bytes);
        }
    }
}

static void check_index(const struct queue *q)
{
    const redisReply *index = q->set[INDEX];
    const redisReply *entries = q->set[ENTRIES];

    for (size_t i = 0; i < entries->elements; i++) {
        if (!has(index, entries->element[i])) {
            DEFECT("%sindex lacks '%s'", q->prefix, entries->element[i]->str);
        }
    }
    for (size_t i = 0; i < index->elements; i++) {
        if (!has(entries, index->element[i]) && !has(q->set[ALLOWED], index->element[i])) {
            DEFECT("%sindex has '%s' of no job", q->prefix, index->element[i]->str);
        }
    }
}

static void check_reports(const struct queue *q)
{
    for (size_t i = 0; i < q->set[REPORT]->elements; i++) {
        if (!has(q->set[REPORTED], q->set[REPORT]->element[i])) {
            DEFECT("%sreport %s is of no job", q->prefix, q->set[REPORT]->element[i]->str);
        }
    }
    for (size_t i = 0; i < q->set[REPORTED]->elements; i++) {
        if (!has(q->set[REPORT], q->set[REPORTED]->element[i])) {
            DEFECT("%sreport %s is missing", q->prefix, q->set[REPORTED]->element[i]->str);
        }
    }
}

static void check_errors(const struct queue *q)
{
    const redisReply *errors = q->set[ERRORS];
    const redisReply *failed = q->set[FAILED];

    for (size_t i = 0; i < errors->elements; i++) {
        if (!has(failed, errors->element[i])) {
            DEFECT("%serrors %s is of no job that has some", q->prefix, errors->element[i]->str);
        }
    }
    for (size_t i = 0; i < failed->elements; i++) {
        if (!has(errors, failed->element[i])) {
            DEFECT("%serrors %s is missing", q->prefix, failed->element[i]->str);
        }
    }
}

/* The batches that are closed, and have no entry in the index. */
static void check_batches(struct server *s, const struct queue *q)
{
    static const char find[] =
        "local all, out = redis.pcall('HGETALL', KEYS[1] .. 'batches'), {} "
        "for i = 1, #all, 2 do local first = 'b ' .. all[i] "
        "local jobs = redis.pcall('ZRANGEBYLEX', KEYS[1] .. 'index', '[' .. first .. ' ', '(' .. "
        "first .. '!') "
        "if #jobs == 0 and (tonumber(all[i + 1]) or 1e12) >= 1e12 then "
        "table.insert(out, all[i]) end end return out";
    redisReply *over = redis_cmd(s, "EVAL %s 1 %s", find, q->prefix);

    for (size_t i = 0; i < over->elements; i++) {
        DEFECT("%sbatches %s should have ended", q->prefix, over->element[i]->str);
    }
    freeReplyObject(over);
}

static void check_queue(const struct queue *q)
{
    const redisReply *jobs = q->set[JOBS];
    const redisReply *attempts = q->set[ATTEMPTS];

    for (size_t i = 0; i < jobs->elements; i++) {
        const redisReply *id = jobs->element[i];
        bool is_kept = has(q->set[KEPT], id);
        int n = has(q->set[DUE], id) + has(q->set[RUN], id) + has(q->set[DEAD], id) + is_kept;
        if (n != 1) {
            DEFECT("%sjobs %s is in %d of due (%d), run (%d), dead (%d), kept (%d)", q->prefix,
                   id->str, n, has(q->set[DUE], id), has(q->set[RUN], id), has(q->set[DEAD], id),
                   is_kept);
        }
        if (is_kept != has(q->set[HOW], id)) {
            DEFECT("%sjobs %s: %s", q->prefix, id->str,
                   is_kept ? "nobody knows how it ended" : "it has not ended");
        }
        if (has(q->set[RUN], id) && !has(attempts, id)) {
            DEFECT("%srun %s is held by nobody", q->prefix, id->str);
        }
    }

    static const int sets[] = {DUE, RUN, DEAD, KEPT};

    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        int k = sets[s];
        for (size_t i = 0; i < q->set[k]->elements; i++) {
            if (!has(jobs, q->set[k]->element[i])) {
                DEFECT("%s%s %s has no record", q->prefix, set_name[k], q->set[k]->element[i]->str);
            }
        }
    }

    for (size_t i = 0; i < q->set[NEXT]->elements; i++) {
        const redisReply *id = q->set[NEXT]->element[i];
        if (!has(q->set[RUN], id) || !has(q->set[FOLLOWED], id)) {
            DEFECT("%snext %s is of no job that runs and is to wait again", q->prefix, id->str);
        }
    }
    for (size_t i = 0; i < q->set[FOLLOWED]->elements; i++) {
        if (!has(q->set[NEXT], q->set[FOLLOWED]->element[i])) {
            DEFECT("%snext %s is missing", q->prefix, q->set[FOLLOWED]->element[i]->str);
        }
    }

    check_errors(q);
    for (size_t i = 0; i < q->set[MISCOUNTED]->elements; i++) {
        DEFECT("%sp:%s has not as many parts as its group says", q->prefix,
               q->set[MISCOUNTED]->element[i]->str);
    }
    for (size_t i = 0; i < attempts->elements; i++) {
        if (!has(jobs, attempts->element[i])) {
            DEFECT("%sattempts %s has no record", q->prefix, attempts->element[i]->str);
        }
    }
    check_index(q);
    check_reports(q);
}

static bool known(const struct queue *q, const char *rest, size_t len)
{
    if (len > 3 && memcmp(rest, "t:{", 3) == 0) {
        return true; /* a listener's canary: it lives for a millisecond */
    }

    if (len > 2 && (memcmp(rest, "t:", 2) == 0 || memcmp(rest, "p:", 2) == 0)) {
        redisReply id = {.type = REDIS_REPLY_STRING, .str = (char *)(uintptr_t)(rest + 2)};
        id.len = (__typeof__(id.len))(len - 2); /* int in hiredis 0.14, size_t in 1.x */
        return has(q->set[rest[0] == 't' ? DUE : GROUPS], &id);
    }

    for (int i = 0; i < N_SETS; i++) {
        if (strcmp(rest, set_name[i]) == 0) {
            return true;
        }
    }

    for (size_t i = 0; i < sizeof other_name / sizeof *other_name; i++) {
        if (strcmp(rest, other_name[i]) == 0) {
            return true;
        }
    }

    return false;
}

/* A job that was due in a millisecond has a trigger for that and one more: Redis may show it when
 * the job is gone. */
static bool about_to_expire(struct server *s, const char *rest, const redisReply *key)
{
    return strncmp(rest, "t:", 2) == 0 && redis_int(s, "PTTL %b", key->str, (size_t)key->len) <= 1;
}

static void check_key(struct server *s, const struct queue *queues, size_t n, const redisReply *key)
{
    if (strstr(key->str, ":{}:alive") || strstr(key->str, ":{}:queues")) {
        return; /* of no queue: the names of the listeners, and of the queues */
    }

    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(queues[i].prefix);
        if ((size_t)key->len > len && memcmp(key->str, queues[i].prefix, len) == 0) {
            if (!known(&queues[i], key->str + len, (size_t)key->len - len) &&
                !about_to_expire(s, key->str + len, key)) {
                DEFECT("stray key %s", key->str);
            }
            return;
        }
    }

    DEFECT("key of no queue that should be there: %s", key->str);
}

int audit(struct server *s, const char *space, ...)
{
    const char *names[QUEUES_MOST];
    size_t n = 0;
    va_list ap;

    va_start(ap, space);
    for (const char *name; (name = va_arg(ap, const char *)); n++) {
        cr_assert(n < QUEUES_MOST);
        names[n] = name;
    }

    va_end(ap);
    return audit_queues(s, space, names, n);
}

int audit_queues(struct server *s, const char *space, const char *const *names, size_t n)
{
    struct queue queues[QUEUES_MOST];

    defects = 0;
    cr_assert(n <= QUEUES_MOST);
    for (size_t i = 0; i < n; i++) {
        snprintf(queues[i].prefix, sizeof queues[i].prefix, "%s:{%s}:", space, names[i]);
        read_queue(s, &queues[i]);
        check_queue(&queues[i]);
        check_batches(s, &queues[i]);
    }

    /* KEYS, unlike SCAN, does not touch what it finds, so the audit rings no bells */
    redisReply *keys = redis_cmd(s, "KEYS %s:*", space);
    for (size_t i = 0; i < keys->elements; i++) {
        check_key(s, queues, n, keys->element[i]);
    }

    freeReplyObject(keys);
    for (size_t i = 0; i < n; i++) {
        freeReplyObject(queues[i].all);
    }

    return defects;
}

int fds_open(void)
{
    DIR *d = opendir("/proc/self/fd");

    cr_assert(d);
    int n = -1; /* not the one that reads them */
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] != '.') {
            n++;
        }
    }
    closedir(d);
    return n;
}

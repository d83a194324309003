/* SPDX-License-Identifier: MIT */
/* What the heads of the scripts say of keys, beside what Redis saw the scripts do. */
#include "script.h"

SCRIPTS(heads);

enum { KEYS_MAX = 24 };
static const char *const writes[] = {"ZADD",  "ZREM",       "ZREMRANGEBYSCORE",
                                     "HSET",  "HDEL",       "SET",
                                     "DEL",   "UNLINK",     "PUBLISH",
                                     "XADD",  "LPUSH",      "XGROUP",
                                     "XTRIM", "XAUTOCLAIM", "RPUSH",
                                     "LTRIM"};

/* The ends of key names, each once, in the order in which they were first met. */
struct keys {
    const char *end[KEYS_MAX];
    size_t n;
};

struct touched {
    struct keys read;
    struct keys written;
};

static size_t place_of(const struct keys *keys, const char *end)
{
    size_t i = 0;

    while (i < keys->n && strcmp(keys->end[i], end) != 0) {
        i++;
    }
    return i;
}

static void add_key(struct keys *keys, const char *end)
{
    if (place_of(keys, end) == keys->n) {
        cr_assert_lt(keys->n, (size_t)KEYS_MAX);
        keys->end[keys->n++] = end;
    }
}

static bool is_write(const char *command)
{
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        if (strcmp(writes[i], command) == 0) {
            return true;
        }
    }
    return false;
}

/* A line of MONITOR: 1700000000.000001 [0 lua] "ZADD" "s:{q}:due" "5" "id". One key is of no
 * queue. */
static void note(void *arg, char *line)
{
    struct touched *t = arg;
    const char *command = strstr(line, " lua] \"");

    if (!command) {
        return;
    }

    command += strlen(" lua] \"");
    bool writes = is_write(text("%.*s", (int)strcspn(command, "\""), command));
    for (const char *key = command; (key = strstr(key, "\" \"s:{"));) {
        key = strstr(key, "}:") + strlen("}:");
        add_key(writes ? &t->written : &t->read, text("%.*s", (int)strcspn(key, ":\""), key));
    }
}

/* What the head says: the line NAME KEY... writes KEY... */
static struct touched said_by_head(const char *name)
{
    char *all = test_read_file(text("%s/lua/keys", test_build()), NULL);
    char *line = strstr(all, text("\n%s ", name));
    struct touched t = {0};
    struct keys *keys = &t.read;

    if (!line) {
        cr_assert(strncmp(all, name, strlen(name)) == 0, "no head of %s", name);
        line = all;
    }
    line += strcspn(line, " ");

    char *words = text("%.*s", (int)strcspn(line, "\n"), line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        if (strcmp(word, "writes") == 0) {
            keys = &t.written;
        } else {
            add_key(keys, word);
        }
    }

    free(all);
    return t;
}

static void all_of(const char *script, const char *what, const struct keys *some,
                   const struct keys *others)
{
    for (size_t i = 0; i < some->n; i++) {
        cr_expect_lt(place_of(others, some->end[i]), others->n, "%s: %s %s", script, what,
                     some->end[i]);
    }
}

static void in_order(const char *script, const struct keys *written, const struct keys *said)
{
    for (size_t i = 1; i < written->n; i++) {
        cr_expect_lt(place_of(said, written->end[i - 1]), place_of(said, written->end[i]),
                     "%s: writes %s before %s", script, written->end[i - 1], written->end[i]);
    }
}

Test(heads, name_the_keys_that_a_script_reads_and_those_that_it_writes_in_their_order)
{
    redisContext *monitor = redis_monitor(redis);
    struct touched ignored;
    struct touched seen = {0};

    for (const struct script_call *call = script_calls; call->name; call++) {
        const char *name = call->name;
        struct touched said = said_by_head(name);

        everything_for(call->args);
        if (strcmp(name, "mend") == 0) {
            ask("HDEL s:{q}:attempts r");
        }
        ignored = (struct touched){0};
        redis_monitor_read(monitor, redis, note, &ignored);

        struct touched t = {0};
        given(name, call->args);
        redis_monitor_read(monitor, redis, note, &t);
        in_order(name, &t.written, &said.written);

        for (size_t k = 0; k < t.read.n; k++) {
            add_key(&seen.read, t.read.end[k]);
        }
        for (size_t k = 0; k < t.written.n; k++) {
            add_key(&seen.written, t.written.end[k]);
        }
        if (call[1].name && strcmp(call[1].name, name) == 0) {
            continue; /* it does the rest there */
        }

        all_of(name, "its head does not name what it reads:", &seen.read, &said.read);
        all_of(name, "its head does not name what it writes:", &seen.written, &said.written);
        all_of(name, "does not read what its head names:", &said.read, &seen.read);
        all_of(name, "does not write what its head names:", &said.written, &seen.written);
        seen = (struct touched){0};
    }

    redisFree(monitor);
    ask("FLUSHALL");
}

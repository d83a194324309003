/* SPDX-License-Identifier: MIT */
/* Records with attributes: what scripts make of them, beside what C does. */
#include "job/record.h"
#include "script.h"

SCRIPTS(attributes);

/* The length of each record in ARGV up to its body, its numbers, and its attributes as a text. */
static char *reader(void)
{
    static const char rest[] =
        "local out = {} for i, record in ipairs(ARGV) do local len, tries, first, most, found = "
        "record_header(record) local texts = {} for c = 65, 122 do local v = found and "
        "found[string.char(c)] for _, one in ipairs(type(v) == 'table' and v or {v}) do "
        "texts[#texts "
        "+ 1] = string.char(c) .. one .. ';' end end out[i] = len and {len, tries, first, most, "
        "table.concat(texts)} or 0 end return out";
    char *attributes = test_read_file(text("%s/src/lua/lib/attributes.lua", test_root()), NULL);
    char *record = test_read_file(text("%s/src/lua/lib/record.lua", test_root()), NULL);
    char *script = text("local FOREVER = 4294967295 %s %s %s", attributes, record, rest);

    free(attributes);
    free(record);
    return script;
}

static const char *letters_of(struct span attributes, size_t *len)
{
    static char out[2 * ATTRIBUTES_MAX];
    struct attribute a;
    size_t n = 0;
    char last = '\0';

    while (attributes_take(&attributes, &a)) {
        if (a.letter == last && a.letter != 'h' && a.letter != 'T') {
            continue; /* of a letter that may come once the first counts */
        }
        out[n++] = last = a.letter;
        memcpy(out + n, a.value.at, a.value.len);
        n += a.value.len;
        out[n++] = ';';
    }
    *len = n;
    return out;
}

static void agree(const redisReply *said, const char *record, size_t len)
{
    struct record r;
    struct span text = {record, len};

    if (!record_decode(&r, text)) {
        cr_assert_eq(said->type, REDIS_REPLY_INTEGER, "C cannot read it, Lua can: %s", show(said));
        return;
    }

    cr_assert_eq(said->type, REDIS_REPLY_ARRAY, "Lua cannot read it, C can");
    cr_assert_eq((size_t)said->element[0]->integer, len - r.body.len);
    cr_assert_eq(said->element[1]->integer, r.tries);
    cr_assert_eq(said->element[2]->integer, r.backoff_ms);
    cr_assert_eq(said->element[3]->integer, r.backoff_max_ms);
    size_t n;
    const char *letters = letters_of(r.attributes, &n);
    cr_assert_eq((size_t)said->element[4]->len, n);
    cr_assert(memcmp(said->element[4]->str, letters, n) == 0);
}

enum { RECORDS = 500, RECORD_MAX = 40 };

static size_t random_record(char *out, uint64_t *seed)
{
    static const char bytes[] = "hhhabzATGKLRUeb\0\1\2\3\4\5\6\x80= s1";
    size_t len = (*seed = *seed * 6364136223846793005u + 1442695040888963407u) >> 33;

    len %= RECORD_MAX;
    for (size_t i = 0; i < len; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        out[i] = bytes[(*seed >> 33) % (sizeof bytes - 1)];
    }
    if (len > 2) {
        out[0] = 2;
        out[1] = (char)(len % 3 ? 0 : len % 9);
        out[2] = (char)(len - 3 - (*seed >> 40) % 3);
    }
    return len;
}

Test(attributes, are_read_by_scripts_as_they_are_read_by_c)
{
    static char records[RECORDS][RECORD_MAX];
    const char *argv[3 + RECORDS] = {"EVAL", reader(), "0"};
    size_t len[3 + RECORDS] = {4, strlen(argv[1]), 1};
    uint64_t seed = 1;
    int n_read = 0;

    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < RECORDS; i++) {
            argv[3 + i] = records[i];
            len[3 + i] = random_record(records[i], &seed);
        }

        redisReply *r = redisCommandArgv(redis->redis, 3 + RECORDS, argv, len);
        cr_assert(r && r->type == REDIS_REPLY_ARRAY, "%s", r ? r->str : redis->redis->errstr);
        for (size_t i = 0; i < RECORDS; i++) {
            agree(r->element[i], records[i], len[3 + i]);
            n_read += r->element[i]->type == REDIS_REPLY_ARRAY;
        }
        freeReplyObject(r);
    }

    cr_assert_gt(n_read, 200, "%d", n_read);
}

/* The body begins at #. */
static const char *const readable[] = {
    "\\02\\00\\00#body",
    "\\02\\00\\05h\\03a=b#body",
    "\\02\\03\\05\\06\\05h\\03a=b#body",
    "\\02\\00\\08h\\02a=h\\02a=#body",
    "\\02\\00\\04a\\02\\00\\01#body",
    "\\02\\00\\06a\\00h\\02b=#body",
    "\\02\\00\\03z\\01z", /* no body */
};

Test(attributes, stand_before_the_body)
{
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        given("schedule", text("0 a +5 0 %s", readable[i]));
        redisReply *r = run("get", "0 a");
        const char *record = text("['a' 1 T+5 '' '%s']", readable[i]);
        same(__FILE__, __LINE__, "row", show(r->element[1]), record);
        r = run("cancel", "0 a 0");
        size_t len = strcspn(readable[i], "#");
        const char *header = text("['a' 1 T+5 '' '%.*s']", (int)len, readable[i]);
        same(__FILE__, __LINE__, "without the body", show(r->element[1]), header);
    }
    KEYS("");
}

Test(attributes, that_cannot_be_read_make_a_job_die_with_the_reason)
{
    static const char *const record[] = {
        "\\02\\00",               /* no length */
        "\\02\\00\\80",           /* half of one */
        "\\02\\00\\06h\\03a=b",   /* longer than the record */
        "\\02\\00\\05h\\04a=bb",  /* longer than the attributes */
        "\\02\\00\\01h",          /* no length of its own */
        "\\02\\00\\02h\\80",      /* half of one */
        "\\02\\00\\04b\\00a\\00", /* descending */
        "\\02\\00\\02[\\00",      /* no letter */
        "\\02\\00\\02{\\00",      /* nor is this */
        "\\02\\00\\02T\\00",      /* a tag that is none */
        "\\02\\00\\03T\\01{",     /* so is this */
        "\\02\\00\\1bT\\01aT\\01bT\\01cT\\01dT\\01eT\\01fT\\01gT\\01hT\\01i", /* nine tags */
        "\\02\\00\\06R\\011R\\012", /* two where one may be */
        "\\02\\00\\02A\\00",        /* a capital one that is not known */
        "\\02\\00\\05A\\00h\\01x",  /* also beside others */
        "\\02\\08\\05h\\03a=b",     /* an unknown flag */
        "\\02\\01\\00\\05h\\03a=b", /* no tries */
        "\\03\\00\\05h\\03a=b",     /* another version */
    };

    for (size_t i = 0; i < sizeof record / sizeof *record; i++) {
        ask("FLUSHALL");
        given("schedule", text("0 a +0 0 %s", record[i]));
        RUN("get", "0 a", "[U 'EDATA']");
        RUN("list", "0 1 10 '' ''", "[U 0 ['a' 1 T '' '']]");
        RUN("check", "0 jobs 0 100",
            text("[U 0 1 %d 1]", (int)ask("HSTRLEN s:{q}:jobs a")->integer + 1));
        RUN("claim", "0 me 1000 1",
            "[U 0 0 1 0 0 0 ['a' 3 T '1 0 me 0 0 U T stored data is in a format this version "
            "cannot "
            "read' '' 0]]");
        KEYS(
            text("dead a:T | jobs a=%s | attempts a=1 0 me 0 0 U T stored data is in a format this "
                 "version cannot read",
                 record[i]));
    }
    ask("FLUSHALL");
}

/* Then its length has two bytes. */
Test(attributes, may_have_a_value_of_more_than_127_bytes)
{
    const char *value = text("n=%0*d", 198, 7);
    const char *record = text("\\02\\00\\cf\\01h\\c8\\01%sz\\02ab", value);

    given("schedule", text("0 a +5 0 %s#body", record));
    RUN("cancel", "0 a 0", text("[U ['a' 1 T+5 '' '%s']]", record));
}

Test(attributes, of_a_small_letter_that_comes_twice_are_the_first)
{
    given("schedule", "0 a +0 0 \\02\\00\\08b\\02l7b\\02l9");
    given("claim", "0 me 1000 1");
    RUN("retry", "0 me a U+1 '' x", "[U T+7]");
    given("cancel", "0 a 0");
    KEYS("seq U+1");
}

static void schedule_with(size_t size)
{
    static char record[5000] = {2, 0};
    const char *argv[] = {"0", "a", "+5", "2", record};
    size_t len[] = {1, 1, 2, 1, 4 + size};

    memset(record, 0, sizeof record);
    record[0] = 2;
    record[2] = (char)(size % 128 | 128), record[3] = (char)(size / 128);
    for (size_t i = 4; i < 4 + size; i += 2) {
        record[i] = 'x';
    }
    run_bytes("schedule", 5, argv, len);
}

Test(attributes, have_4_KiB_at_most)
{
    schedule_with(4096);
    cr_assert_eq(run("get", "0 a")->element[1]->type, REDIS_REPLY_ARRAY);
    schedule_with(4098);
    RUN("get", "0 a", "[U 'EDATA']");
}

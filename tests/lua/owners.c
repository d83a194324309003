/* SPDX-License-Identifier: MIT */
/* Whose job it is: what scripts say, beside what listeners say. */
#include "job/owner.h"
#include "script.h"

SCRIPTS(owners);

enum { ID_MAX = 255, MEMBERS_MAX = 64 };

/* What listeners say. */
static int64_t owner(const char *id, int64_t n_members)
{
    return owner_of((struct span){id, strlen(id)}, n_members);
}

/* Of each id in ARGV its owner among 1, 2... listeners. */
static char *owners_script(void)
{
    char *lib = test_read_file(text("%s/src/lua/lib/owners.lua", test_root()), NULL);
    char *script = text("%s local owners = {} for _, id in ipairs(ARGV) do for n = 1, %d do "
                        "owners[#owners + 1] = owner_of(id, n) end end return owners",
                        lib, MEMBERS_MAX);

    free(lib);
    return script;
}

static void agree(const char *const *ids, size_t n_ids)
{
    const char *argv[3 + ID_MAX] = {"EVAL", owners_script(), "0"};
    size_t i = 0;

    cr_assert_leq(n_ids, (size_t)ID_MAX);
    memcpy(argv + 3, ids, n_ids * sizeof *ids);

    redisReply *r = redisCommandArgv(redis->redis, (int)(3 + n_ids), argv, NULL);
    cr_assert(r && r->type == REDIS_REPLY_ARRAY, "%s", r ? r->str : redis->redis->errstr);
    cr_assert_eq(r->elements, n_ids * MEMBERS_MAX);

    for (size_t k = 0; k < n_ids; k++) {
        for (int64_t n = 1; n <= MEMBERS_MAX; n++, i++) {
            int64_t rank = owner(ids[k], n);
            cr_assert(rank >= 0 && rank < n, "%s of %" PRId64, ids[k], n);
            cr_assert_eq(r->element[i]->integer, rank, "%s of %" PRId64, ids[k], n);
        }
    }

    freeReplyObject(r);
}

Test(owners, are_those_of_the_listeners_for_ids_of_every_length)
{
    const char *ids[ID_MAX];

    for (int i = 0; i < ID_MAX; i++) {
        ids[i] = text("%.*s", i + 1, text("%0*d", ID_MAX, i * 7919));
    }
    agree(ids, ID_MAX);

    for (int i = 0; i < ID_MAX; i++) {
        char *id = text("%*d", i + 1, 0);
        memset(id, '~', (size_t)i + 1);
        ids[i] = id;
    }
    agree(ids, ID_MAX);
}

Test(owners, are_those_of_the_listeners_for_every_byte_at_every_place)
{
    for (int place = 0; place < 5; place++) {
        const char *ids['~' - '!' + 1];
        size_t n = 0;

        for (char byte = '!'; byte <= '~'; byte++) {
            if (byte != '{' && byte != '}') {
                char *id = text("order:%d", 1000 + place);
                id[place] = byte;
                ids[n++] = id;
            }
        }
        agree(ids, n);
    }
}

/* A touch finds its own by the same rule. */
Test(owners, claim_their_jobs_by_a_touch)
{
    enum { MEMBERS = 7 };
    long long n_own[MEMBERS] = {0};

    many(0, 100, "+0");
    for (int i = 0; i < 100; i++) {
        n_own[owner(text("j%03d", i), MEMBERS)]++;
    }

    for (int rank = 0; rank < MEMBERS; rank++) {
        redisReply *r = run("touch", text("0 me 1000 100 0 %d %d 0 0", rank, MEMBERS));
        cr_assert_eq(r->elements, (size_t)(14 + n_own[rank]));
        for (size_t i = 14; i < r->elements; i++) {
            const char *id = r->element[i]->element[0]->str;
            cr_assert_eq(owner(id, MEMBERS), rank, "%s", id);
        }
    }
}

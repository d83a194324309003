/* SPDX-License-Identifier: MIT */
/* Texts of the options, and what options_read() makes of the whole. */
#include "api/options.h"
#include "allocations.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char a64[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char a65[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/* ---- texts ---- */
static const struct {
    const char *name, *text;
    bool good;
} texts[] = {
    {"url", "redis://h", true},
    {"url", "unix:///s", true},
    {"url", "", false},
    {"url", "http://h", false},
    {"url", "redis://", false},
    {"space", "lapse", true},
    {"space", "A.b_c-9", true},
    {"space", a64, true},
    {"space", a65, false},
    {"space", "", false},
    {"space", "a b", false},
    {"space", "a:b", false},
    {"space", "{a}", false},
    {"name", "worker:1", true},
    {"name", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`|~", true},
    {"name", a64, true},
    {"name", a65, false},
    {"name", "", false},
    {"name", "a b", false},
    {"name", " ", false},
    {"name", "a{", false},
    {"name", "}a", false},
    {"name", "a\n", false},
    {"name", "a\x1f", false},
    {"name", "a\x7f", false},
    {"name", "a\x80", false},
    {"name", "\xff", false},
};

static void set_text(struct lapse_options *o, const char *name, const char *text)
{
    if (strcmp(name, "url") == 0) {
        o->url = text;
    } else if (strcmp(name, "space") == 0) {
        o->space = text;
    } else {
        o->name = text;
    }
}

Test(options, texts_are_checked_the_same_by_name_and_by_struct)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct lapse_options o = lapse_options_init();
        struct lapse_options want = o;
        struct lapse_options in = o;
        struct options out;
        if (texts[i].good) {
            set_text(&want, texts[i].name, texts[i].text);
        }
        cr_expect_eq(lapse_options_set(&o, texts[i].name, texts[i].text),
                     texts[i].good ? 0 : LAPSE_EINVAL, "%s=\"%s\"", texts[i].name, texts[i].text);
        cr_expect_arr_eq((char *)&o, (char *)&want, sizeof o, "%s=\"%s\"", texts[i].name,
                         texts[i].text);
        set_text(&in, texts[i].name, texts[i].text);
        int err = options_read(&out, &in);
        cr_expect_eq(err, texts[i].good ? 0 : LAPSE_EINVAL, "%s=\"%s\"", texts[i].name,
                     texts[i].text);
        if (err == 0) {
            options_free(&out);
        }
    }
}

Test(options, texts_have_defaults)
{
    struct options o;

    cr_assert_eq(options_read(&o, NULL), 0);
    cr_expect_str_eq(o.set.space, "lapse");
    cr_expect_str_eq(o.address.host, "127.0.0.1");
    cr_expect_eq(o.address.port, 6379);
    cr_expect_eq(o.address.db, 0);
    cr_expect_not(o.address.unix_socket);

    char pid[16];
    snprintf(pid, sizeof pid, ":%d", (int)getpid());

    const char *colon = strrchr(o.set.name, ':');
    cr_assert(colon && colon > o.set.name);
    cr_expect_str_eq(colon, pid);
    options_free(&o);
}

/* A host may be called anything. */
Test(options, the_default_name_is_a_name_whatever_the_host_is_called)
{
    static const struct {
        const char *host, *name;
    } rows[] = {
        {"box", "box"},
        {"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeee",
         "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeee"}, /* 48 */
        {"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeef",
         "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeee"},
        {a64, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"", "localhost"},
        {"a{b}", "localhost"},
        {"a b", "localhost"},
        {"a\n", "localhost"},
    };

    if (unshare(CLONE_NEWUTS) && unshare(CLONE_NEWUSER | CLONE_NEWUTS)) {
        cr_skip_test("needs a host name of its own");
    }

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct options o;
        char want[96];
        cr_assert_eq(sethostname(rows[i].host, strlen(rows[i].host)), 0);
        cr_assert_eq(options_read(&o, NULL), 0, "host \"%s\"", rows[i].host);
        snprintf(want, sizeof want, "%s:%d", rows[i].name, (int)getpid());
        cr_expect_str_eq(o.set.name, want);
        options_free(&o);
    }
}

Test(options, texts_are_copied)
{
    struct lapse_options in = lapse_options_init();
    struct options o;
    static const char url[] = "redis://me:se%63ret@h.example:7000/3";
    char *u = unit_copy(url, sizeof url);
    char *space = unit_copy("mine", 5);
    char *name = unit_copy("n", 2);

    in.url = u;
    in.space = space;
    in.name = name;
    cr_assert_eq(options_read(&o, &in), 0);
    memset(u, 'x', sizeof url);
    free(u);
    free(space);
    free(name);
    cr_expect_str_eq(o.set.space, "mine");
    cr_expect_str_eq(o.set.name, "n");
    cr_expect_str_eq(o.address.user, "me");
    cr_expect_str_eq(o.address.password, "secret");
    cr_expect_str_eq(o.address.host, "h.example");
    cr_expect_eq(o.address.port, 7000);
    cr_expect_eq(o.address.db, 3);
    cr_expect_null(o.set.url, "it holds the password");
    options_free(&o);
    cr_expect_null(o.texts);
    options_free(&o);
}

Test(options, the_log_is_passed_on)
{
    struct lapse_options in = lapse_options_init();
    struct options o;

    in.log = (lapse_log_fn *)(uintptr_t)1234;
    in.log_arg = &in;
    cr_assert_eq(options_read(&o, &in), 0);
    cr_expect_eq(o.set.log, in.log);
    cr_expect_eq(o.set.log_arg, &in);
    options_free(&o);
}

static char freed[256];
static void *watched(void *old, size_t size)
{
    static size_t had;

    if (size == 0) {
        memcpy(freed, old, had < sizeof freed ? had : sizeof freed);
        freed[255] = 1;
        free(old);
        return NULL;
    }

    had = size;
    return realloc(old, size);
}

Test(options, what_is_freed_holds_no_password)
{
    struct lapse_options in = lapse_options_init();
    struct options o;

    lapse_set_allocator(watched);
    in.url = "redis://u:correcthorse@host";
    cr_assert_eq(options_read(&o, &in), 0);
    cr_expect_str_eq(o.address.password, "correcthorse");
    options_free(&o);
    cr_expect_eq(freed[255], 1, "it was freed");
    for (size_t i = 0; i < 255; i++) {
        cr_assert_eq(freed[i], 0, "byte %zu is '%c'", i, freed[i]);
    }
}

Test(options, without_memory_nothing_is_touched)
{
    struct lapse_options in = lapse_options_init();
    struct options out;
    struct options was;

    in.url = "redis://u:p@h";
    memset(&out, 0x5a, sizeof out);
    memcpy(&was, &out, sizeof out);
    alloc_install();
    alloc_fail(1);
    cr_expect_eq(options_read(&out, &in), LAPSE_ENOMEM);
    cr_expect(alloc_has_failed());
    cr_expect_arr_eq((char *)&out, (char *)&was, sizeof out);
    cr_expect_eq(alloc_live(), 0);
    alloc_fail(2);
    cr_expect_eq(options_read(&out, &in), 0, "one allocation is all");
    cr_expect_eq(alloc_live(), 1);
    options_free(&out);
    cr_expect_eq(alloc_live(), 0);
}

/* ---- sizes ---- */
static void expect_fields_before(const struct options *o, size_t end)
{
#define KNOWN(field) (offsetof(struct lapse_options, field) < end)
    cr_expect_eq(o->set.size, sizeof o->set);
    cr_expect_str_eq(o->address.host, "there");
    cr_expect_str_eq(o->set.space, KNOWN(space) ? "sp" : "lapse");
    cr_expect_eq(strcmp(o->set.name, "nm") == 0, KNOWN(name));
    cr_expect_eq(o->set.lease_ms, KNOWN(lease_ms) ? 1001 : 30000);
    cr_expect_eq(o->set.run_ms, KNOWN(run_ms) ? 1002 : 600000);
    cr_expect_eq(o->set.sweep_ms, KNOWN(sweep_ms) ? 1003 : 5000);
    cr_expect_eq(o->set.reply_ms, KNOWN(reply_ms) ? 1004 : 5000);
    cr_expect_eq(o->set.max_running, KNOWN(max_running) ? 1005 : 256);
    cr_expect_eq(o->set.max_pending, KNOWN(max_pending) ? 1006 : 10000);
    cr_expect_eq(o->set.max_bytes, KNOWN(max_bytes) ? 2u << 20 : 64u << 20);
    cr_expect_eq(o->set.flags, KNOWN(flags) ? 3 : 0);
    cr_expect_eq(o->set.log != NULL, KNOWN(log));
    cr_expect_eq(o->set.log_arg != NULL, KNOWN(log_arg));
    cr_expect_eq(o->set.arm_ahead_ms, KNOWN(arm_ahead_ms) ? 1007 : 0);
    cr_expect_eq(o->set.notify, KNOWN(notify) ? LAPSE_KEYSPACE : LAPSE_KEYEVENT);
    cr_expect_eq(o->set.replicas, KNOWN(replicas) ? 2 : 0);
    cr_expect_eq(o->set.replicas_ms, KNOWN(replicas_ms) ? 1008 : 1000);
#undef KNOWN
}

/* An older caller's struct ends after some field; what lies behind it is not ours to read. */
Test(options, an_older_callers_struct_is_shorter)
{
    static const size_t ends[] = {
        offsetof(struct lapse_options, space),
        offsetof(struct lapse_options, name),
        offsetof(struct lapse_options, lease_ms),
        offsetof(struct lapse_options, run_ms),
        offsetof(struct lapse_options, sweep_ms),
        offsetof(struct lapse_options, reply_ms),
        offsetof(struct lapse_options, max_running),
        offsetof(struct lapse_options, max_bytes),
        offsetof(struct lapse_options, flags),
        offsetof(struct lapse_options, max_pending),
        offsetof(struct lapse_options, arm_ahead_ms),
        offsetof(struct lapse_options, notify),
        offsetof(struct lapse_options, replicas),
        offsetof(struct lapse_options, replicas_ms),
        sizeof(struct lapse_options),
    };
    struct lapse_options full = {.url = "redis://there:1",
                                 .space = "sp",
                                 .name = "nm",
                                 .lease_ms = 1001,
                                 .run_ms = 1002,
                                 .sweep_ms = 1003,
                                 .reply_ms = 1004,
                                 .max_running = 1005,
                                 .max_pending = 1006,
                                 .max_bytes = 2 << 20,
                                 .flags = 3,
                                 .log = (lapse_log_fn *)(uintptr_t)1,
                                 .log_arg = &full,
                                 .arm_ahead_ms = 1007,
                                 .notify = LAPSE_KEYSPACE,
                                 .replicas = 2,
                                 .replicas_ms = 1008};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct options o;
        full.size = ends[i];
        struct lapse_options *in = unit_copy(&full, ends[i]);
        cr_assert_eq(options_read(&o, in), 0, "size %zu", ends[i]);
        free(in);
        expect_fields_before(&o, ends[i]);
        options_free(&o);
    }
}

Test(options, a_struct_that_was_never_initialised_is_refused)
{
    for (size_t size = 0; size < offsetof(struct lapse_options, space); size++) {
        struct lapse_options in = lapse_options_init();
        struct options o;
        in.size = size;
        cr_expect_eq(options_read(&o, &in), LAPSE_EINVAL, "size %zu", size);
    }
}

Test(options, a_newer_callers_extra_fields_must_be_zero)
{
    enum { EXTRA = 24, SIZE = sizeof(struct lapse_options) + EXTRA };

    for (size_t i = 0; i <= EXTRA; i++) {
        struct lapse_options init = lapse_options_init();
        struct options o;
        init.size = SIZE;
        init.lease_ms = 777;
        char *in = calloc(1, SIZE);
        memcpy(in, &init, sizeof init);
        if (i < EXTRA) {
            in[sizeof init + i] = (char)(i % 2 ? 1 : 0x80);
        }
        int err = options_read(&o, (struct lapse_options *)(void *)in);
        free(in);
        if (i < EXTRA) {
            cr_expect_eq(err, LAPSE_EINVAL, "byte %zu", i);
        } else {
            cr_assert_eq(err, 0);
            cr_expect_eq(o.set.lease_ms, 777);
            cr_expect_eq(o.set.size, sizeof init);
            options_free(&o);
        }
    }
}

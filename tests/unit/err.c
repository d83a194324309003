/* SPDX-License-Identifier: MIT */
#include "base/error.h"
#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* not made from LAPSE_ERRORS: a number never changes */
static const struct {
    const char *name;
    int number, code, maybe;
} codes[] = {
    {"EINVAL", -1, LAPSE_EINVAL, 0},     {"ENOMEM", -2, LAPSE_ENOMEM, 0},
    {"EFULL", -3, LAPSE_EFULL, 0},       {"ECLOSED", -4, LAPSE_ECLOSED, 0},
    {"EEXIST", -5, LAPSE_EEXIST, 0},     {"ENOENT", -6, LAPSE_ENOENT, 0},
    {"EBUSY", -7, LAPSE_EBUSY, 0},       {"EGONE", -8, LAPSE_EGONE, 0},
    {"EREFUSED", -9, LAPSE_EREFUSED, 0}, {"EDATA", -10, LAPSE_EDATA, 0},
    {"ELOST", -11, LAPSE_ELOST, 1},      {"ETIMEOUT", -12, LAPSE_ETIMEOUT, 1},
    {"EBROKEN", -13, LAPSE_EBROKEN, 1},  {"EDOWN", -14, LAPSE_EDOWN, 0},
    {"EDENIED", -15, LAPSE_EDENIED, 0},  {"EAUTH", -16, LAPSE_EAUTH, 0},
    {"EALONE", -17, LAPSE_EALONE, 1},    {"EENDED", -18, LAPSE_EENDED, 0},
    {"EHALF", -19, LAPSE_EHALF, 0},
};
enum { CODES = sizeof codes / sizeof *codes };
static const int unknown[] = {1, 2, -100, -CODES - 1, INT_MIN, INT_MAX};

Test(err, the_table_here_has_every_code)
{
    size_t n = 0;
#define LAPSE_X(name, number, did, text) n++;
    LAPSE_ERRORS(LAPSE_X)
#undef LAPSE_X
    cr_assert_eq(n, CODES);
}

Test(err, a_code_keeps_its_number)
{
    for (size_t i = 0; i < CODES; i++) {
        cr_expect_eq(codes[i].code, codes[i].number, "%s", codes[i].name);
    }
    cr_expect_eq(LAPSE_OK, 0);
}

Test(err, every_code_has_a_text_of_its_own)
{
    for (size_t i = 0; i < CODES; i++) {
        const char *text = lapse_strerror(codes[i].code);
        cr_assert(text && *text, "%s", codes[i].name);
        cr_expect_str_neq(text, lapse_strerror(LAPSE_OK), "%s", codes[i].name);
        cr_expect_str_neq(text, lapse_strerror(INT_MAX), "%s", codes[i].name);
        for (size_t j = 0; j < i; j++) {
            cr_expect_str_neq(text, lapse_strerror(codes[j].code), "%s and %s", codes[i].name,
                              codes[j].name);
        }
    }
#define LAPSE_X(name, number, did, text) cr_expect_str_eq(lapse_strerror(LAPSE_##name), text);
    LAPSE_ERRORS(LAPSE_X)
#undef LAPSE_X
}

Test(err, any_int_has_a_text)
{
    cr_expect_str_eq(lapse_strerror(LAPSE_OK), "ok");
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        cr_expect_str_eq(lapse_strerror(unknown[i]), "unknown error", "%d", unknown[i]);
    }
}

Test(err, outcome_unknown_is_true_of_the_maybe_codes_alone)
{
    for (size_t i = 0; i < CODES; i++) {
        cr_expect_eq(lapse_outcome_unknown(codes[i].code), codes[i].maybe, "%s", codes[i].name);
    }
    cr_expect_eq(lapse_outcome_unknown(LAPSE_OK), 0);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        cr_expect_eq(lapse_outcome_unknown(unknown[i]), 0, "%d", unknown[i]);
    }
}

Test(err, a_name_has_its_code_and_no_other_text_has_one)
{
    for (size_t i = 0; i < CODES; i++) {
        const char *name = codes[i].name;
        size_t len = strlen(name);
        char other[16];
        cr_expect_eq(err_code(name, len), codes[i].code, "%s", name);
        for (size_t cut = 0; cut < len; cut++) {
            cr_expect_eq(err_code(name, cut), 0, "%zu of %s", cut, name);
        }
        cr_expect_eq(err_code(name, len + 1), 0, "%s and its NUL", name);
        for (size_t at = 0; at < len; at++) {
            memcpy(other, name, len + 1);
            other[at] ^= 0x20;
            cr_expect_eq(err_code(other, len), 0, "%s", other);
        }
        memcpy(other, name, len);
        other[len] = 'X';
        cr_expect_eq(err_code(other, len + 1), 0, "%.*s", (int)len + 1, other);
    }

    const char *const none[] = {"",        "OK",       "ERR",     "E", "LAPSE", "LAPSE_EINVAL",
                                " EINVAL", "NOSCRIPT", "EINVALID"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        cr_expect_eq(err_code(none[i], strlen(none[i])), 0, "\"%s\"", none[i]);
    }
}

Test(err, what_cannot_happen_ends_the_program_and_says_where)
{
    int fds[2];
    int status = 0;

    cr_assert_eq(pipe(fds), 0);

    pid_t pid = fork();
    cr_assert_geq(pid, 0);

    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        ASSERT(1 + 1 == 2);
        ASSERT(fds[0] == -7);
        _exit(0);
    }

    close(fds[1]);

    char said[256];
    size_t n = 0;
    for (ssize_t got;
         n < sizeof said - 1 && (got = read(fds[0], said + n, sizeof said - 1 - n)) > 0;) {
        n += (size_t)got;
    }

    said[n] = '\0';
    close(fds[0]);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %d", status);
    cr_expect(strstr(said, "fds[0] == -7") && strstr(said, "err.c:"), "said: %s", said);
}

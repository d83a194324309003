/* SPDX-License-Identifier: MIT */
/* The checker of histories is checked: each bad one is refused for the invariants that its name
 * begins with. */
#include "tool.h"
#include <glob.h>

static struct proc *check(const char *path)
{
    char program[4096];
    const char *name = strrchr(path, '/') + 1;
    snprintf(program, sizeof program, "%s/history-check", test_build());
    return proc_run(NULL, program, "--late-ms", strncmp(name, "I11", 3) ? "0" : "500", path, NULL);
}

static bool names(const struct proc *p, const char *invariant, size_t len)
{
    for (const char *line = p->out; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, invariant, len) == 0 && line[len] == ' ') {
            return true;
        }
    }
    return false;
}

/* Says these invariants, and none but them: "I4-the-rest", "I3-I4-the-rest". */
static void names_only(const struct proc *p, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    bool of_name[100] = {false};

    for (size_t len; *name == 'I' && name[1] >= '0' && name[1] <= '9'; name += len + 1) {
        len = strcspn(name, "-");
        of_name[atoi(name + 1)] = true;
        cr_assert(names(p, name, len), "%s:\n%s%s", path, p->out, p->err);
    }

    for (const char *line = p->out; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        cr_assert(line[0] != 'I' || of_name[atoi(line + 1)], "%s:\n%s", path, p->out);
    }
}

static size_t each(const char *kind, void (*look)(const char *path))
{
    char pattern[4096];
    glob_t g;

    snprintf(pattern, sizeof pattern, "%s/tests/history/%s/*.jsonl", test_root(), kind);
    cr_assert_eq(glob(pattern, 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        look(g.gl_pathv[i]);
    }

    size_t n = g.gl_pathc;
    globfree(&g);
    return n;
}

static void is_refused(const char *path)
{
    struct proc *p = check(path);
    cr_assert_eq(p->status, 1, "%s: status %d\n%s%s", path, p->status, p->out, p->err);
    names_only(p, path);
    proc_free(p);
}

static void passes(const char *path)
{
    struct proc *p = check(path);
    cr_assert_eq(p->status, 0, "%s: status %d\n%s%s", path, p->status, p->out, p->err);
    proc_free(p);
}

Test(history_check, each_bad_one_is_refused_for_the_right_reason)
{
    cr_assert_geq(each("bad", is_refused), 12);
}

Test(history_check, each_good_one_passes)
{
    cr_assert_geq(each("good", passes), 4);
}

Test(history_check, each_invariant_has_a_bad_one)
{
    for (int i = 1; i <= 13; i++) {
        char pattern[4096];
        glob_t g;
        snprintf(pattern, sizeof pattern, "%s/tests/history/bad/I%d-*.jsonl", test_root(), i);
        cr_assert_eq(glob(pattern, 0, NULL, &g), 0, "I%d", i);
        globfree(&g);
    }
}

Test(history_check, what_is_cut_off_or_no_history_is_not_judged)
{
    static const char *const text[] = {"", "{\"proc\":\"p\",\"op\":\"note\",\"mono_ns\":1}\n",
                                       "[]\n",
                                       "{\"proc\":\"p\",\"op\":\"enqueue\",\"mono_ns\":1}\n",
                                       "{\"proc\":\"p\",\"op\":\"dance\",\"mono_ns\":1}\n"};
    char dir[64];
    char path[80];

    test_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/h.jsonl", dir);

    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        FILE *f = fopen(path, "w");
        cr_assert(f && fputs(text[i], f) >= 0 && fclose(f) == 0);
        expect(check(path), 2, NULL, NULL);
    }

    test_dir_remove(dir);
}

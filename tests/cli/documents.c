/* SPDX-License-Identifier: MIT */
/* What the documents tell a reader to type does what they say. Those of tools/doc/users.md are in
 * users.c. */
#include "tool.h"

/* Starts bash, in the root of the repository, on the ```sh blocks between two headings of a
 * document. What they put into build goes to a folder of this test. */
static struct proc *start_typing(const char *before, const char *file, const char *from,
                                 const char *to)
{
    char line[1024];

    snprintf(line, sizeof line,
             "cd \"$root\" || exit;"
             "{"
             "  echo '%s';"
             "  sed -n '/^## %s/,/^## %s/p' %s | sed -n '/^```sh/,/^```$/p' | grep -v '^```'"
             "    | sed \"s|build/dev.out|$dir/dev.out|; s|build/first|$dir/first|g; "
             "s|build/|$build/|g; s|-Lbuild |-L$build |; s|-rpath,build |-rpath,$build |\";"
             "} > $dir/typed;"
             "exec bash -em $dir/typed",
             before, from, to, file);
    return proc_start((const char *const[]){"bash", "-c", line, NULL});
}

static void prepare(char dir[64])
{
    test_dir(dir, 64);
    setenv("dir", dir, 1);
    setenv("root", test_root(), 1);
    setenv("build", test_build(), 1);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    unsetenv("LAPSE_PASSWORD");
}

/* What differs from a reader's shell: all is built already; a library with the calls of a sanitizer
 * or of gcov in it links only as the Makefile links it; and a busy machine may need more than a
 * second to start a Redis, or to print a job. */
static const char as_built[] =
    "make() { :; };"
    "function sleep { until test -s $dir/dev.out; do command sleep 0.1; done; };"
    "function kill {"
    "  until grep -q late_ms $dir/dev.out; do command sleep 0.1; done;"
    "  command kill \"$@\";"
    "};"
    "if nm $build/liblapse.a | grep -q \"__asan_\\|__msan_\\|__gcov_\"; then"
    "  cc() { cp $build/examples/first $dir/first; };"
    " fi";

Test(readme, quick_start_does_what_it_says)
{
    char dir[64];
    char socket[128];

    prepare(dir);

    struct proc *p = start_typing(as_built, "README.md", "Quick start", "When to use it");
    until_out(p, "unix://");
    until_out(p, "\"state\":\"waiting\"");
    until_out(p, "\"late_ms\":");
    until_out(p, "session 42 was idle for a second\n");
    cr_assert_eq(sscanf(p->out, "unix://%127[^\n]", socket), 1, "%s", p->out);
    expect(p, 0, "\"id\":\"4711\"", NULL);
    until_gone(socket);
    test_dir_remove(dir);
}

/* redis-cli goes to the server of this test. No NUL of a record ends what we read. A busy machine
 * may need more than half a second to subscribe, and its subscriber is ended when it has heard what
 * it was started for; what it heard comes last. */
static const char on_our_server[] =
    "redis-cli() {"
    "  if [ \"$1\" = SUBSCRIBE ]; then exec redis-cli -s $socket \"$@\" > $heard; fi;"
    "  command redis-cli -s $socket \"$@\" | sed \"s/\\x00//g\";"
    "};"
    "function sleep { until redis-cli PUBSUB CHANNELS | grep -q .; do command sleep 0.1; done; };"
    "function kill {"
    "  until grep -q \"^0 4711\" $heard; do command sleep 0.1; done;"
    "  command kill \"$@\"; cat $heard;"
    "};";

Test(protocol, examples_are_a_whole_life)
{
    char dir[64];
    char heard[80];
    prepare(dir);
    struct server *s = tool_redis();
    snprintf(heard, sizeof heard, "%s/heard", dir);
    setenv("socket", s->socket, 1);
    setenv("heard", heard, 1);

    struct proc *p = start_typing(on_our_server, "tools/doc/protocol.md", "Producer", "What stays");
    proc_wait(p, PROC_WAIT_MS);
    cr_assert(has(p, "\n4711\n1\n") && has(p, "unpaid"), "it waits: %s", p->out);
    cr_assert(has(p, "\n0 4711\n"), "its notice: %s", p->out);
    cr_assert(has(p, "\n1\nsubscribe\n"), "done: %s", p->out);
    cr_assert(!has(p, "EGONE") && !has(p, "ERR"), "%s", p->out);
    expect(p, 0, NULL, "");
    no_jobs(s, "orders");
    server_stop(s);
    test_dir_remove(dir);
}

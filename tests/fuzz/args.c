/* SPDX-License-Identifier: MIT */
/* Command lines: words, each ended by a NUL. All of the program but its connection and its children
 * is behind it. */
#include "cli/arguments.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include "fuzz.h"
#include "dev/private_redis.h"
#include <setjmp.h>

enum { WORDS = 32 };

static jmp_buf ended;

/* ---- what the program is left without ---- */
const struct command cmd_help = {"help", "[COMMAND]", "", 0, 1, NULL, "", NULL, NULL};
const struct command *const commands[] = {
    &cmd_schedule, &cmd_cancel,  &cmd_reschedule, &cmd_requeue, &cmd_run,
    &cmd_kill,     &cmd_get,     &cmd_list,       &cmd_depth,   &cmd_configure,
    &cmd_pause,    &cmd_unpause, &cmd_forward,    &cmd_adopt,   &cmd_claim,
    &cmd_done,     &cmd_retry,   &cmd_snooze,     &cmd_fail,    &cmd_release,
    &cmd_renew,    &cmd_listen,  &cmd_dev,        &cmd_bench,   &cmd_report,
    &cmd_help,     NULL,
};

/* linked in the place of close_stdout(), which --help and --version hand to exit() */
_Noreturn int __wrap_close_stdout(int code);
_Noreturn int __wrap_close_stdout(int code)
{
    longjmp(ended, code + 1);
}

int client_open(struct client *c, struct globals *g, void (*refused)(struct client *))
{
    (void)c;
    (void)g;
    (void)refused;
    return DOWN;
}

int oneshot_run(struct oneshot *o, struct globals *g, int (*send)(struct oneshot *o))
{
    (void)g;
    (void)send;
    MUST(!check_queue(o->queue)); /* before the first connection */
    return DOWN;
}

int oneshot_sent(struct oneshot *o, int err)
{
    (void)o;
    return err;
}

void oneshot_ended(struct oneshot *o)
{
    (void)o;
}

bool oneshot_replied(struct oneshot *o, int err, const char *queue, const char *id)
{
    (void)o;
    (void)err;
    (void)queue;
    (void)id;
    return false;
}

int client_report(struct client *c, int err, const char *about)
{
    (void)c;
    (void)err;
    (void)about;
    return DOWN;
}

void client_forget_warnings(struct client *c)
{
    (void)c;
}

bool client_is_denied(const struct client *c)
{
    (void)c;
    return 0;
}

void client_set_exit_code(struct client *c, int code)
{
    (void)c;
    (void)code;
}

void client_close(struct client *c, int64_t grace_ms)
{
    (void)c;
    (void)grace_ms;
}

int client_run(struct client *c)
{
    (void)c;
    return DOWN;
}

/* ---- the target ---- */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_quiet();
    MUST(freopen("/dev/null", "r", stdin)); /* where schedule - reads */
    return 0;
}

static void run(struct arguments *w)
{
    static char fields[1 << 14]; /* the struct of a command that is not run */
    struct globals g = {.opts = lapse_options_init(), .connect_wait_ms = -1};
    const struct command *cmd;

    if (arguments_read_global(&g, w) || !w->n || !(cmd = command_find(w->v[0]))) {
        return;
    }

    w->v++, w->n--;

    if (cmd == &cmd_dev || cmd == &cmd_bench ||
        cmd == &cmd_help) { /* these start a Redis, or take long */
        memset(fields, 0, sizeof fields);
        arguments_read(cmd, &g, fields, w);
    } else {
        int rc = cmd->run(cmd, &g, w);
        MUST(rc == USAGE || rc == DOWN || rc == INTERNAL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *v[WORDS + 1];
    struct arguments w = {v, 0, 0};

    for (char *at = text; at < text + size && w.n < WORDS; at += strlen(at) + 1) {
        v[w.n++] = at;
    }

    v[w.n] = NULL;
    if (!setjmp(ended)) {
        run(&w);
    }

    free(text);

    return 0;
}

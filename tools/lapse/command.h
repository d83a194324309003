/* SPDX-License-Identifier: MIT */
/* What all commands share: exit codes, the global options, the shape of a command. Data goes to
 * stdout, everything else through message_print() to stderr. All arguments are checked before the
 * first connection. */
#ifndef COMMAND_H
#define COMMAND_H
#include <lapse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DONE = 0,
    ANSWER_NO = 1, /* ENOENT, EEXIST, EBUSY, EGONE, EENDED */
    USAGE = 2,     /* nothing was asked of Redis */
    DOWN = 69,     /* EX_UNAVAILABLE: Redis cannot be reached, or its reply was lost */
    INTERNAL = 70, /* EX_SOFTWARE: out of memory, unreadable data */
    OUTPUT = 74,   /* EX_IOERR: stdout could not be written */
    DENIED = 77,   /* EX_NOPERM: wrong password, missing permission */
    UNFIT = 78,    /* EX_CONFIG: this Redis may evict jobs */
    UNREAD = 141,  /* 128 + SIGPIPE: the reader of stdout went away, as head does; no message */
};

struct globals {
    struct lapse_options opts;
    char *url; /* as given; a password in it is masked once it has been copied */
    const char *password_file;
    char *secret_url; /* what lapse_open() gets; owned, wiped after it */
    char *shown_url;  /* the same without the password; owned */
    bool text, json;  /* the format that was asked for; neither: the default of the command */
    bool verbose;
    bool is_private; /* lapse dev has started this Redis: only its configuration can be changed */
    int64_t
        connect_wait_ms; /* how long to wait for a Redis that cannot be reached; -1: not given */
};

struct opt {
    const char *name;
    char letter;     /* 0: none */
    const char *arg; /* NULL: a switch */
    /* 0, or USAGE after it has printed why; field is at this offset of the command's own struct */
    int (*set)(const struct opt *o, char *value, void *field);
    size_t at;
    const char *help;
};

/* What is left of argv once the options are taken out. */
struct arguments {
    char **v;
    int n;
    int n_before_dashes; /* how many of them came before "--" */
};

struct command {
    const char *name, *usage, *summary;
    int min, max; /* number of arguments */
    const struct opt *opts;
    const char *text;  /* of the help: what it prints, examples */
    const char *exits; /* exit codes of its own; NULL: none */
    int (*run)(const struct command *cmd, struct globals *g, struct arguments *args);
};
extern const struct command cmd_schedule, cmd_cancel, cmd_reschedule, cmd_requeue, cmd_run,
    cmd_kill, cmd_get, cmd_batch, cmd_wait, cmd_list, cmd_depth, cmd_queues, cmd_listeners,
    cmd_history, cmd_quiet, cmd_stop, cmd_remove, cmd_configure, cmd_pause, cmd_unpause,
    cmd_forward, cmd_adopt, cmd_claim, cmd_report, cmd_done, cmd_retry, cmd_snooze, cmd_fail,
    cmd_release, cmd_renew, cmd_listen, cmd_dev, cmd_bench, cmd_doctor, cmd_functions, cmd_cron,
    cmd_help;
extern const struct command *const commands[]; /* NULL at the end */
#endif

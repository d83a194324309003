/* SPDX-License-Identifier: MIT */
/* What the commands share: exit codes, global options, the shape of a command. Data goes to stdout,
 * everything else through message_print() to stderr. All arguments are checked before the first
 * connection. */
#ifndef TOOL_H
#define TOOL_H
#include <lapse.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    DONE = 0,
    ANSWER_NO = 1, /* ENOENT, EEXIST, EBUSY */
    USAGE = 2,     /* nothing was asked of Redis */
    DOWN = 69,     /* EX_UNAVAILABLE: Redis is not there, or its answer is not */
    INTERNAL = 70, /* EX_SOFTWARE: no memory, unreadable data */
    OUTPUT = 74,   /* EX_IOERR: stdout would not take the answer */
    DENIED = 77,   /* EX_NOPERM: wrong password, missing right */
    UNFIT = 78,    /* EX_CONFIG: this Redis may evict jobs */
    /* 128 + SIGPIPE: who read stdout went away, as head does; nothing is said of it */
    UNREAD = 141,
};

struct globals {
    struct lapse_options opts;
    char *url; /* as given; a password in it is blotted out once copied */
    const char *password_file;
    char *secret_url; /* what lapse_open() gets; ours, wiped after it */
    char *shown_url;  /* the same without the password; ours */
    int text, json;   /* the format that was asked for; none: what the command prefers */
    int verbose;
    int64_t connect_wait_ms; /* for a Redis that is not there; -1: not said */
};

struct opt {
    const char *name;
    char letter;                                               /* 0: none */
    const char *arg;                                           /* NULL: a switch */
    int (*set)(const struct opt *o, char *value, void *field); /* 0, or USAGE and has said why */
    /* of the field, in the command's own struct */
    size_t at;
    const char *help;
};

struct arguments { /* what is left of argv when the options are taken out */
    char **v;
    int n;
    int before; /* how many of them stood before "--" */
};

struct command {
    const char *name, *words, *summary;
    int min, max; /* words */
    const struct opt *opts;
    const char *text;  /* of the help: what it prints, examples */
    const char *exits; /* exit codes of its own */
    int (*run)(const struct command *cmd, struct globals *g, struct arguments *w);
};
extern const struct command cmd_schedule, cmd_cancel, cmd_reschedule, cmd_get, cmd_list, cmd_depth,
    cmd_listen, cmd_dev, cmd_bench, cmd_doctor, cmd_help;
extern const struct command *const commands[]; /* NULL at the end */

/* ---- args.c ---- */
/* the options before the command; 0 or USAGE */
int args_global(struct globals *g, struct arguments *w);
int args_parse(const struct command *cmd, struct globals *g, void *to, struct arguments *w);
const struct command *args_command(const char *name); /* NULL: has named the nearest */
void args_help(const struct command *cmd, FILE *to);  /* NULL: of the whole program */

/* ---- say.c ---- */
void message_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From now on a line that stderr does not take at once is lost, and later the number of such lines
 * is told. */
void message_set_nonblocking(void);
int usage_error(const char *what, const char *value, const char *rule); /* says all three; USAGE */
/* bytes outside 0x20-0x7e as \xNN, cut at 256; good until the eighth call after */
const char *printable(const char *text);
/* printable(), of a word that the user typed: what may be a password in it is *** */
const char *printable_argument(const char *word);
int close_stdout(int code);  /* flushes and closes stdout; code, or stdout_error_code() */
int stdout_error_code(void); /* of a write to stdout that failed: UNREAD, or OUTPUT */

/* ---- value.c ---- */
#define TEN_YEARS_MS INT64_C(315576000000)         /* what Redis is told to check, too */
int parse_duration(const char *text, int64_t *ms); /* 0 or -1, as the two below */
int parse_time(const char *text, int64_t *ms);
int parse_count(const char *text, unsigned max, unsigned *out); /* 1 to max */
/* 0, or USAGE and has said why, as the four below */
int check_queue(const char *queue);
int check_id(const char *id);
int set_text(const struct opt *o, char *value, void *field);     /* const char * */
int set_switch(const struct opt *o, char *value, void *field);   /* int */
int set_count(const struct opt *o, char *value, void *field);    /* unsigned */
int set_duration(const struct opt *o, char *value, void *field); /* int64_t */
struct when {
    struct lapse_due due;
    const char *in, *at;
};
int set_in(const struct opt *o, char *value, void *field); /* struct when */
int set_at(const struct opt *o, char *value, void *field);
int check_when(const struct when *when); /* exactly one of them was given */

int64_t monotonic_ms(void);

/* ---- password.c ---- */
/* with CR and LF, and to see that it is longer */
enum { PASSWORD_BYTES = 1024, PASSWORD_ROOM = PASSWORD_BYTES + 3 };
#define PASSWORD_RULE "it holds no password: one line of 1 to 1024 bytes without control characters"
int is_password(const char *text, size_t len);
/* "-": stdin; 0, or USAGE and has said why */
int password_read(const char *path, char out[PASSWORD_ROOM]);

/* ---- url.c ---- */
struct piece {
    size_t at, len;
};
/* What may be a password in a word that is, or may have been meant for, a URL; of len 0 if there is
 * none. */
struct piece url_secret(const char *word, int is_url);
const char *printable_url(
    const char *url);     /* printable_argument(), of a word that was given as a URL */
void url_blot(char *url); /* so that ps does not show it */
void url_blot_env(void);
/* secret_url and shown_url from all the places they may come from */
int url_make(struct globals *g);
void url_wipe(struct globals *g);
#endif

/* SPDX-License-Identifier: MIT */
/* What tests share. Every test is a process of its own (Criterion forks), so nothing here keeps
 * state between tests, and setenv() in a test concerns that test alone. What fails in here fails
 * the test. */
#ifndef SUPPORT_H
#define SUPPORT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ev_loop;
struct redisContext;
struct redisReply;

/* ---- where things are ---- */
const char *test_build(void);          /* LAPSE_TEST_BUILD, or "build" */
const char *test_root(void);           /* LAPSE_TEST_ROOT, or "." */
void test_dir(char *out, size_t size); /* a fresh private folder */
void test_dir_remove(const char *dir);
char *test_read_file(const char *path, size_t *len); /* the caller's to free; NUL after it */
int64_t test_now_ms(void);                           /* monotonic */

/* ---- server.c: a redis-server of one's own, from redis.conf, on a Unix socket ---- */
enum { SERVER_ARGS = 24 };
struct server {
    pid_t pid; /* 0: not running */
    int port;  /* on 127.0.0.1; 0: none */
    char dir[64], socket[80], url[120], tcp_url[80];
    const char *args[SERVER_ARGS + 1]; /* the caller's, after the config file's; NULL ends them */
    struct redisContext *redis;        /* redis.c's connection */
    int n_proxies;
};
struct server *server_start(void);
/* must live as long as the server; NULL: none */
struct server *server_start_opts(const char *const *extra_args);
/* the same, and on a free port: tcp_url */
struct server *server_start_tcp(const char *const *extra_args);
void server_kill9(struct server *s);
/* kill -9 if it runs; starts on the same files: the log of writes is replayed */
void server_restart(struct server *s);
void server_signal(struct server *s, int sig); /* SIGSTOP, SIGCONT */
void server_stop(struct server *s);            /* and removes its folder; NULL is fine */
/* Every server has the users of tools/doc/users.md, with the password "secret".
 * LAPSE_TEST_ACL=listener makes the URLs of all servers and proxies those of that user; the tests
 * themselves look at Redis as a user who may do anything. */
const char *server_login(void); /* of these URLs: "lapse_listener:secret@"; or "" */
/* this test needs a listener: it is skipped where the user is a producer */
void server_listens(void);
void server_allow(struct server *s, const char *rules); /* this user, besides: a format too */
/* how often Redis refused them anything, each told on stderr */
int server_refusals(struct server *s);

/* ---- redis.c: a blocking look at it; formats are hiredis's (%s, %b, %lld) ---- */
/* the caller's to free; errors too */
struct redisReply *redis_cmd(struct server *s, const char *format, ...);
/* an integer, or a text that is one */
long long redis_int(struct server *s, const char *format, ...);
/* the caller's to free; NULL: nil; errors as "ERR ..." */
char *redis_str(struct server *s, const char *format, ...);
void redis_do(struct server *s, const char *format, ...); /* must not answer an error */
int64_t redis_now_ms(struct server *s);
/* Jobs that wait or run, of both at one moment: one that goes back meanwhile is counted. */
long long redis_left(struct server *s, const char *space, const char *queue);
/* Runs BUILD/lua/NAME.lua with one key and NULL-ended texts, or with any bytes. */
struct redisReply *redis_script(struct server *s, const char *name, const char *key, ...);
struct redisReply *redis_scriptv(struct server *s, const char *name, const char *key, size_t argc,
                                 const char *const *argv, const size_t *len);

/* ---- loop.c ---- */
/* did it become true? */
bool loop_until(struct ev_loop *loop, bool (*cond)(void *arg), void *arg, int timeout_ms);
void loop_for(struct ev_loop *loop, int ms); /* only to show that something does not happen */
bool is_true(void *flag);                    /* a cond: *(bool *)flag */

/* ---- audit.c: what must be true of Redis whenever nobody is in the middle of something ---- */
/* queues, NULL: number of defects, each told on stderr */
int audit(struct server *s, const char *space, ...);
int fds_open(void);

/* ---- alloc.c: lapse_set_allocator() with a count and a fault ---- */
void alloc_install(void); /* before the first lapse_open() */
long alloc_live(void);    /* blocks not given back */
long alloc_made(void);    /* blocks asked for so far, those made larger too */
/* the nth allocation from now fails, once; 0: none */
void alloc_fail(long nth);
bool alloc_has_failed(void);                   /* since alloc_fail() */
void alloc_fail_often(long of, unsigned seed); /* one in so many, at random, until alloc_fail() */

/* ---- names.c: what a host name stands for ---- */
/* numbers, NULL-ended; they live as long as the test */
void names_set(const char *host, const char *const *list);
long names_asked(void); /* how often it was looked up */

/* ---- proxy.c: a bad wire between a client and the server; each change is in force when its call
 * returns ---- */
enum proxy_way { PROXY_UP, PROXY_DOWN }; /* to Redis, to the client */
struct proxy {
    pid_t pid;
    int wake; /* eventfd: look at ctl */
    struct proxy_ctl *ctl;
    char url[160], tcp_url[80];
};
struct proxy *proxy_start(struct server *s);
/* Passes so many bytes from now on, of any connection, then cuts the one that had the last of them;
 * once. */
void proxy_cut_after(struct proxy *p, enum proxy_way way, long bytes);
/* Bytes that will pass before it cuts; -1: it has cut. */
long proxy_cut_left(struct proxy *p, enum proxy_way way);
void proxy_cut_conn(struct proxy *p, long n); /* only the nth connection counts for it; 0: any */
void proxy_drop(struct proxy *p);             /* cuts all there are */
void proxy_half_close(struct proxy *p);       /* clients read an end, and may go on to write */
void proxy_swallow(struct proxy *p, bool on); /* reads everything, forwards nothing, both ways */
/* Swallows no more, and cuts all there are in the same moment: what was swallowed would be missed
 * in the midst. */
void proxy_heal(struct proxy *p);
void proxy_swallow_conn(struct proxy *p, long n);  /* of the nth connection only; 0: of any */
void proxy_refuse(struct proxy *p, bool on);       /* accepts and closes */
void proxy_delay(struct proxy *p, int ms);         /* each piece, each way */
void proxy_jitter(struct proxy *p, int ms);        /* so much more or less than that */
void proxy_aim(struct proxy *p, struct server *s); /* new connections go to another server */
/* Holds what clients say, each connection once it has the answers to all it asked, and new ones;
 * false: goes on. What is held when the aim changes goes on to the other server; subscriptions are
 * cut. Of no user who logs in. */
void proxy_hold(struct proxy *p, bool on);
long proxy_conns(struct proxy *p); /* accepted so far */
long proxy_bytes(struct proxy *p, enum proxy_way way);
void proxy_stop(struct proxy *p);

/* ---- proc.c: a program under test; it inherits the environment, and dies with the test ---- */
struct proc {
    pid_t pid;              /* 0: ended and reaped */
    int status;             /* exit status, or 128 + signal; -1 while it runs */
    int in, out_fd, err_fd; /* -1: closed */
    char *out, *err;        /* what it wrote so far; NUL after it */
    size_t out_len, err_len;
};
/* argv[0] "lapse", "examples/x": from BUILD; NULL ends */
struct proc *proc_start(const char *const *argv);
void proc_write(struct proc *p, const void *data, size_t len);
void proc_close_in(struct proc *p);
bool proc_until_out(struct proc *p, const char *text, int timeout_ms); /* stdout has it */
bool proc_until_err(struct proc *p, const char *text, int timeout_ms);
int proc_wait(struct proc *p, int timeout_ms); /* its status; -1: did not end */
void proc_signal(struct proc *p, int sig);
/* Starts it, writes in (NULL: nothing), waits 10 s; the arguments end with NULL. */
struct proc *proc_run(const char *in, const char *arg0, ...);
void proc_free(struct proc *p); /* kills what still runs; NULL is fine */
#endif

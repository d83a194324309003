/* SPDX-License-Identifier: MIT */
/* A server that answers what the test decides. Alone it gives every command the same answer.
 * Before a true Redis it passes on each command and its answer, one after the other, but answers
 * those of one step itself; Redis does not see these. */
#ifndef SCRIPTED_SERVER_H
#define SCRIPTED_SERVER_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct server;

/* Of a connection's beginning, then the scripts. */
enum { SCRIPTED_STEPS = 22, SCRIPTED_NONE = -1, SCRIPTED_ANY = -2 };
extern const char *const scripted_steps[SCRIPTED_STEPS];
int scripted_step(const char *name);
bool scripted_step_is_script(int step);

struct scripted_server {
    pid_t pid;
    struct scripted_ctl *ctl;
    char dir[64]; /* of its socket */
    char path[100], url[120];
    int port; /* on 127.0.0.1; 0: it listens on its socket alone */
};

struct scripted_server *scripted_server_start(const void *answer, size_t len);
/* Listens on a free port too. */
struct scripted_server *scripted_server_start_tcp(const void *answer, size_t len);
struct scripted_server *scripted_server_before(struct server *redis);
/* From now on it answers this step so; SCRIPTED_NONE: it passes all on. */
void scripted_server_answer(struct scripted_server *s, int step, const char *answer);
/* The same of all commands of this name, such as "WAIT"; "": it passes them on. */
void scripted_server_answer_command(struct scripted_server *s, const char *name,
                                    const char *answer);
/* This command, such as "SENTINEL MASTER" or "EVALSHA sha", is answered so, whatever others are; of
 * at most 4 at a time. NULL: as others are. */
void scripted_server_answer_to(struct scripted_server *s, const char *command, const char *answer);
/* Each of its own answers comes so much later. */
void scripted_server_delay(struct scripted_server *s, int ms);
/* Serves so many connections at a time; others wait at the door. */
void scripted_server_conns(struct scripted_server *s, int most);
/* commands it answered itself, since the last change */
long scripted_server_answered(const struct scripted_server *s);
void scripted_server_stop(struct scripted_server *s);
#endif

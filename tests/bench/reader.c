/* SPDX-License-Identifier: MIT */
/* Reads what lapse has forwarded, in a command that Redis holds back until there is something. It
 * stores nothing. Its listen takes reads=stream or reads=list besides; what it has read from a list
 * is in a list of its own until it is settled, as one does who must not lose it. */
#include "bench.h"
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define STREAM "lapse:{bench}:stream"
#define LIST "lapse:{bench}:list"
#define TAKEN "lapse:{bench}:list:taken"
#define GROUP "bench"

static int64_t left_ms(void)
{
    int64_t ms = (listen_until_us() - now_us()) / 1000;
    return ms > 1 ? ms : 1;
}

/* An entry is its id and the fields id, due_ms, try, token and body. */
static void read_stream(void)
{
    redisReply *r =
        pipe_ask("XREADGROUP GROUP " GROUP " reader COUNT 100 BLOCK %lld STREAMS " STREAM " >",
                 (long long)left_ms());
    size_t n = r->elements ? r->element[0]->element[1]->elements : 0;

    for (size_t i = 0; i < n; i++) {
        redisReply *const *field = r->element[0]->element[1]->element[i]->element[1]->element;
        job_started(field[1]->str, field[1]->len, 0, strtoll(field[3]->str, NULL, 10));
    }
    for (size_t i = 0; i < n; i++) {
        pipe_add("XACK " STREAM " " GROUP " %s",
                 r->element[0]->element[1]->element[i]->element[0]->str);
    }

    pipe_wait(0);
    for (size_t i = 0; i < n; i++) {
        job_settled();
    }
    freeReplyObject(r);
}

/* An element is "ID DUE_MS TRY TOKEN BODY". */
static void read_list(void)
{
    redisReply *r = pipe_ask("BLMOVE " LIST " " TAKEN " RIGHT LEFT %f", (double)left_ms() / 1000);

    if (r->type == REDIS_REPLY_STRING) {
        size_t id_len = strcspn(r->str, " ");
        job_started(r->str, id_len, 0, strtoll(r->str + id_len, NULL, 10));
        freeReplyObject(pipe_ask("LREM " TAKEN " 1 %b", r->str, r->len));
        job_settled();
    }
    freeReplyObject(r);
}

static void reader_listen(void)
{
    bool is_stream = strcmp(argument("reads", NULL), "stream") == 0;

    while (listening()) {
        if (is_stream) {
            read_stream();
        } else {
            read_list();
        }
    }
}

int main(int argc, char **argv)
{
    static const struct system reader = {.open = pipe_open, .listen = reader_listen};
    return bench_main(argc, argv, &reader);
}

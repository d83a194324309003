/* SPDX-License-Identifier: MIT */
#include "findings.h"
#include <hiredis/hiredis.h>

void says(struct proc *p, const char *check, const char *verdict, const char *text)
{
    char line[200];

    snprintf(line, sizeof line, "{\"check\":\"%s\"", check);
    const char *at = strstr(p->out, line);
    cr_assert_eq(at != NULL, verdict != NULL, "%s: %s%s", check, p->out, p->err);
    if (at) {
        snprintf(line, sizeof line, "\"verdict\":\"%s\"", verdict);
        size_t len = strcspn(at, "\n");
        cr_assert(memmem(at, len, line, strlen(line)), "not %s:\n%s%s", line, p->out, p->err);
        cr_assert(memmem(at, len, text, strlen(text)), "%s: not '%s':\n%s%s", check, text, p->out,
                  p->err);
    }
}

void says_of(struct proc *p, int port, const char *check, const char *verdict, const char *text)
{
    char want[300];

    snprintf(want, sizeof want, "{\"check\":\"%s\",\"server\":\"127.0.0.1:%d\",\"verdict\":\"%s\"",
             check, port, verdict);
    const char *at = strstr(p->out, want);
    cr_assert(at && memmem(at, strcspn(at, "\n"), text, strlen(text)), "%s %s: %s", want, text,
              p->out);
}

void finds(struct proc *p, int status, const char *check, const char *verdict, const char *text)
{
    proc_wait(p, PROC_WAIT_MS);
    says(p, check, verdict, text);
    expect(p, status < 0 ? p->status : status, NULL, NULL);
}

void as_user(struct server *s, const char *rules)
{
    char url[300];
    redisReply *r = redis_cmd(s, "EVAL %s 0 %s",
                              "local words = {} for w in string.gmatch(ARGV[1], '%S+') do "
                              "words[#words + 1] = w end return words",
                              rules);
    const char *argv[80] = {"ACL", "SETUSER", "u", "reset", "on", ">p"};
    size_t n = 6;

    for (size_t i = 0; i < r->elements; i++) {
        argv[n++] = r->element[i]->str;
    }

    redisReply *answer = redisCommandArgv(s->redis, (int)n, argv, NULL);
    cr_assert(answer && answer->type == REDIS_REPLY_STATUS, "%s", answer ? answer->str : "");
    freeReplyObject(answer);
    freeReplyObject(r);
    snprintf(url, sizeof url, "unix://u:p@%s", s->socket);
    setenv("LAPSE_URL", url, 1);
}

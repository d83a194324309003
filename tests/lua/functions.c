/* SPDX-License-Identifier: MIT */
/* The scripts as functions: they answer and do the same, also where Redis treats functions in
 * another way than scripts. */
#include "script.h"

SCRIPTS(functions);

/* Begins again in the same situation. */
static void begin(void)
{
    static const char no_settings[] = "";

    everything_for(no_settings);
    heard();
}

Test(functions, answer_and_do_what_the_scripts_do)
{
    for (const struct script_call *call = script_calls; call->name; call++) {
        if (!run_has_function(call->name)) {
            continue;
        }

        begin();
        const char *reply = show(run(call->name, call->args));
        const char *after = keys();
        const char *told = heard();

        begin();
        run_by_function(true);
        same(__FILE__, __LINE__, call->name, show(run(call->name, call->args)), reply);
        same(__FILE__, __LINE__, call->name, keys(), after);
        same(__FILE__, __LINE__, call->name, heard(), told);
        run_by_function(false);
    }

    ask("FLUSHALL");
}

/* It makes a group of a stream first, and that is an addition: the script is refused then. The
 * function is not, since it has the flag for all its calls. So it is with a claim that forwards. */
static bool goes_on_when_full(const char *name)
{
    return strcmp(name, "configure") == 0;
}

/* Without series and batches they do nothing, and a full Redis takes none. */
static bool is_of_others(const struct script_call *call)
{
    return strcmp(call->name, "pause") == 0 || strcmp(call->name, "refill") == 0 ||
           strncmp(call->args, "batch=1; ", strlen("batch=1; ")) == 0;
}

/* Redis looks at the flags of a function before it starts it, and of a script at each command. */
Test(functions, of_a_full_redis_work_where_the_scripts_do)
{
    for (const struct script_call *call = script_calls; call->name; call++) {
        if (!run_has_function(call->name) || goes_on_when_full(call->name) || is_of_others(call)) {
            continue;
        }

        begin();
        redis_do(redis, "CONFIG SET maxmemory 1");
        const char *reply = show(run(call->name, call->args));
        redis_do(redis, "CONFIG SET maxmemory 0");
        const char *after = keys();

        begin();
        run_by_function(true);
        run("depth", "0"); /* it is loaded before there is no memory */
        redis_do(redis, "CONFIG SET maxmemory 1");
        const char *got = show(run(call->name, call->args));
        redis_do(redis, "CONFIG SET maxmemory 0");
        run_by_function(false);

        bool refused = strncmp(reply, "-OOM ", 5) == 0;
        cr_assert_eq(strncmp(got, "-OOM ", 5) == 0, refused, "%s: %s", call->name, got);
        if (!refused) {
            same(__FILE__, __LINE__, call->name, got, reply);
        }
        same(__FILE__, __LINE__, call->name, keys(), after);
    }

    ask("FLUSHALL");
}

static redisReply *run_without(const char *right, const char *name, const char *args)
{
    begin();
    run("depth", "0"); /* it is loaded before the rights are taken */
    redis_do(redis, "ACL SETUSER u reset on nopass ~* &* +@all -%s", right);
    redis_do(redis, "AUTH u x");
    redisReply *r = run(name, args);
    redis_do(redis, "AUTH default x");
    return r;
}

Test(functions, that_break_off_say_so_as_scripts_do)
{
    static const char *const rights[] = {"zrem", "hdel"};

    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        const char *reply = show(run_without(rights[i], "done", "0 me r U+3"));
        run_by_function(true);
        same(__FILE__, __LINE__, rights[i], show(run_without(rights[i], "done", "0 me r U+3")),
             reply);
        run_by_function(false);
        cr_assert_eq(strncmp(reply, "-LAPSE EBROKEN ", 15) == 0, i == 1, "%s", reply);
    }

    ask("FLUSHALL");
}

Test(functions, that_only_read_may_be_called_by_who_may_only_read)
{
    static const char *const reads[] = {"get",     "list",     "list_tag",  "depth",  "listeners",
                                        "reclaim", "eviction", "batch_get", "history"};

    five();
    run_by_function(true);
    run("depth", "0");
    for (const struct script_call *call = script_calls; call->name; call++) {
        if (!run_has_function(call->name) || !run_is_of_queue(call->name)) {
            continue;
        }

        bool may = false;
        for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
            may = may || strcmp(reads[i], call->name) == 0;
        }
        redisReply *r = ask("FCALL_RO lapse1_%s 2 " KEY " s:{q}:none 0 1", call->name);
        bool refused = r->type == REDIS_REPLY_ERROR && strstr(r->str, "write flag");
        cr_assert_eq(refused, !may, "%s: %s", call->name, show(r));
    }
}

/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(configure);

#define TOLD "9007199254740992" /* until it is taken away */

Test(configure, of_a_queue_without_settings_shows_none)
{
    RUN("configure", "0 ''", "[U '' '']");
    KEYS("");
    HEARD("");
}

Test(configure, sets_shows_and_tells)
{
    RUN("configure", "4 paused=T+500", "[U '' 'paused=T+500']");
    KEYS("conf 1 paused=T+500 ");
    HEARD("4 'queue'");
    RUN("configure", "0 ''", "[U '' 'paused=T+500']");
    HEARD("");
    RUN("configure", "0 paused=" TOLD, "[U '' 'paused=" TOLD "']");
    KEYS("conf 1 paused=" TOLD " ");
    HEARD("0 'queue'");
}

Test(configure, of_an_empty_value_is_the_default_again)
{
    given("configure", "0 paused=T+500");
    RUN("configure", "0 paused=", "[U '' '']");
    KEYS("");
    HEARD("0 'queue'");
    RUN("configure", "0 paused=", "[U '' '']");
    HEARD("0 'queue'");
}

Test(configure, takes_a_delay_from_now)
{
    now_at(7);
    RUN("configure", "0 paused=+500", "[U+7000 '' 'paused=T+507']");
    KEYS("conf 1 paused=T+507 ");
}

Test(configure, shows_no_pause_that_is_over)
{
    given("configure", "0 paused=+500");
    now_at(499);
    RUN("configure", "0 ''", "[U+499000 '' 'paused=T+500']");
    now_at(500);
    RUN("configure", "0 ''", "[U+500000 '' '']");
    KEYS("conf 1 paused=T+500 ");
    RUN("configure", "0 paused=T+500", "[U+500000 '' '']");
    KEYS("");
}

Test(configure, of_a_name_twice_takes_the_last_value)
{
    RUN("configure", "0 'paused=+1 paused=+2'", "[U '' 'paused=T+2']");
    RUN("configure", "0 'paused=+1 paused= paused=+3  '", "[U '' 'paused=T+3']");
    RUN("configure", "0 ' paused=+1 paused='", "[U '' '']");
    KEYS("");
}

Test(configure, does_all_changes_or_none)
{
    static const struct {
        const char *changes, *wrong;
    } bad[] = {
        {"paused", "paused: must be NAME=VALUE, of printable ASCII characters"},
        {"=5", "=5: must be NAME=VALUE, of printable ASCII characters"},
        {"=", "=: must be NAME=VALUE, of printable ASCII characters"},
        {"paused=\\01", "paused=\\01: must be NAME=VALUE, of printable ASCII characters"},
        {"paused=\\ff", "paused=\\ff: must be NAME=VALUE, of printable ASCII characters"},
        {"paused=a\\00", "paused=a\\00: must be NAME=VALUE, of printable ASCII characters"},
        {"pause=5", "pause=5: there is no such setting"},
        {"Paused=5", "Paused=5: there is no such setting"},
        {"pause=", "pause=: there is no such setting"},
    };
    static const char *const times[] = {
        "soon",
        "-5",
        "+",
        "++5",
        "5+",
        "1.5",
        "0x10",
        "1e3",
        "9007199254740994",
        "+9007199254740992",
        "99999999999999999999999999",
        "inf",
        "nan",
        "5,6",
        "=",
    };

    given("configure", "0 paused=T+500");
    char *before = dumps();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RUN("configure", text("0 'paused= %s'", bad[i].changes), text("[U '%s' '']", bad[i].wrong));
        RUN("configure", text("0 '%s paused='", bad[i].changes), text("[U '%s' '']", bad[i].wrong));
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        RUN("configure", text("0 'paused= paused=%s'", times[i]),
            text("[U 'paused=%s: must be a time in ms, or + and a number of ms from now; at most "
                 "9007199254740992' '']",
                 times[i]));
    }

    same(__FILE__, __LINE__, "keys", dumps(), before);
    HEARD("");
}

/* A newer version wrote them. */
Test(configure, keeps_settings_that_it_does_not_know)
{
    ask("SET s:{q}:conf %s", "1 colour=5/1000 paused=5 x= ");
    RUN("configure", "0 ''", "[U '' 'colour=5/1000 x=']");
    RUN("configure", "0 paused=T+9", "[U '' 'colour=5/1000 paused=T+9 x=']");
    KEYS("conf 1 colour=5/1000 paused=T+9 x= ");
    RUN("configure", "0 colour=", "[U 'colour=: there is no such setting' '']");
    RUN("configure", "0 paused=", "[U '' 'colour=5/1000 x=']");
    KEYS("conf 1 colour=5/1000 x= ");
    ask("DEL s:{q}:conf");
}

Test(configure, of_settings_in_another_format_is_refused)
{
    static const char *const bad[] = {"", "1", "2 paused=5 ", "paused=5", " 1 paused=5 "};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ask("SET s:{q}:conf %s", bad[i]);
        char *before = dumps();
        RUN("configure", "0 ''", "-ERR s:{q}:conf is in a format that this version cannot read");
        RUN("configure",
            "0 paused=", "-ERR s:{q}:conf is in a format that this version cannot read");
        same(__FILE__, __LINE__, bad[i], dumps(), before);
    }
    HEARD("");
}

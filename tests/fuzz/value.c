/* SPDX-License-Identifier: MIT */
/* Durations, moments, counts and names of the command line. */
#include "fuzz.h"
#include "job/keys.h"
#include "cli/values.h"
#include <time.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_quiet();
    return 0;
}

/* libc reads it the same, where it is written as strptime() knows it */
static void check_moment(const char *text, int64_t ms)
{
    struct tm tm = {0};
    const char *end = *text == '@' ? NULL : strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);

    if (end && !*end && tm.tm_sec < 60) {
        MUST(timegm(&tm) * 1000 == ms);
    }
    MUST(ms > -2 * INT64_C(86400000) && ms < INT64_C(1000000000000000));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct opt o = {"in", 0, "DURATION", NULL, 0, ""};
    char *text = fuzz_text(data, size);
    int64_t ms = -1;
    int64_t again = -1;
    unsigned count = 0;
    struct when when = {.in = NULL};

    if (!parse_duration(text, &ms)) {
        char spelled[32];
        MUST(ms >= 0 && ms <= TEN_YEARS_MS);
        snprintf(spelled, sizeof spelled, "%lldms", (long long)ms);
        MUST(!parse_duration(spelled, &again) && again == ms);
        MUST(!set_in(&o, text, &when) && when.due.delay_ms == ms &&
             !set_duration(&o, text, &again));
    }

    if (!parse_time(text, &ms)) {
        check_moment(text, ms);
        set_at(&o, text, &when);
    }

    if (!parse_count(text, 1000, &count)) {
        MUST(count >= 1 && count <= 1000 && (unsigned)atoi(text) == count);
    }

    /* the program and the library agree on names */
    MUST(!check_queue(text) == keys_queue_ok(span_of(text)));
    MUST(!check_id(text) == keys_id_ok(span_of(text)));
    free(text);

    return 0;
}

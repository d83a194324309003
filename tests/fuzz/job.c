/* SPDX-License-Identifier: MIT */
/* Jobs as Redis has them, which other programs may have written: a byte for the state, a row's
 * texts each after a byte for its length, the record last. What comes out goes through every
 * accessor and every printer. */
#include "job/job.h"
#include "job/keys.h"
#include "job/series.h"
#include "fuzz.h"
#include "cli/print.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_quiet();
    return 0;
}

static void print(const struct lapse_job *job, int as_text)
{
    struct globals g = {.text = as_text};
    char *line = NULL;
    size_t len;
    FILE *to = open_memstream(&line, &len);

    MUST(to);
    print_fired(&g, job, to);
    MUST(!fclose(to) && len && line[len - 1] == '\n');
    free(line);
    print_job(&g, job, WITH_BODY | WITH_CREATED);
    print_job_long(job);
}

/* What it says of its moments is what a schedule could have said. */
static void series(const struct lapse_job *job)
{
    struct lapse_series s = lapse_series_init();
    int64_t stages_ms[SERIES_STAGES_MAX];

    MUST(*lapse_job_series(job) == '\0' || lapse_job_stage(job) > 0);
    if (!lapse_job_rule(job, &s, stages_ms)) {
        return;
    }
    MUST(s.n_stages <= SERIES_STAGES_MAX && (s.n_stages > 0) != (s.every_ms > 0));
    MUST(s.until_ms >= 0);
}

/* So is a batch, and its name is an id. */
static void batch(const struct lapse_job *job, bool body)
{
    const char *name = lapse_job_batch(job);
    int awaits = lapse_job_awaits(job);

    MUST(!name || (body && keys_id_ok(span_of(name))));
    MUST(awaits == 0 || awaits == 1);
}

/* So are the limits of a group; and its parts lie in its body. */
static void group(const struct lapse_job *job)
{
    struct lapse_gather g = lapse_gather_init();
    size_t body_len;
    size_t len;
    const char *body = lapse_job_body(job, &body_len);
    const char *part;

    MUST(!lapse_job_gather(job, &g) ||
         (g.most >= 1 && g.most <= 1000 && g.quiet_ms + g.age_ms > 0));
    for (unsigned i = 0; (part = lapse_job_part(job, i, &len)); i++) {
        MUST(i < lapse_job_parts(job) && part > body && part + len <= body + body_len);
    }
}

/* A record is what it was made of: here the body is that of an attribute as well. */
static void there_and_back(unsigned tries, int64_t backoff_ms, int64_t most_ms, struct span body)
{
    unsigned char text[RECORD_HEADER_MAX + 2 * 256 + 3];
    struct attributes a = {.len = 0};
    struct attribute one;

    body.len = body.len < 256 ? body.len : 256;
    MUST(body.len == 0 || attributes_add(&a, 'h', body));

    struct span attributes = {(char *)a.bytes, a.len};
    struct record r = {tries, backoff_ms, most_ms, attributes, body};
    size_t n = record_encode(text, &r);
    MUST(n <= RECORD_HEADER_MAX);
    memcpy(text + n, a.bytes, a.len);
    n += a.len;
    if (body.len) {
        memcpy(text + n, body.at, body.len);
    }

    r = (struct record){.tries = 0};
    MUST(record_decode(&r, (struct span){(char *)text, n + body.len}));
    MUST(r.tries == tries && r.backoff_ms == backoff_ms && r.backoff_max_ms == most_ms);
    MUST(span_eq(r.body, body) && span_eq(r.attributes, attributes));
    MUST(body.len == 0 || (attributes_take(&r.attributes, &one) && span_eq(one.value, body)));
}

static void ask(const struct lapse_job *job, const struct job_row *row, bool body)
{
    enum lapse_state state = lapse_job_state(job);
    size_t len;

    MUST(state == (enum lapse_state)row->state ||
         (state == LAPSE_SERIES && row->state == LAPSE_WAITING));
    MUST(strlen(lapse_job_reason(job)) <= JOB_REASON_MAX);
    lapse_job_body(job, &len);
    MUST(body || (len == 0 && !lapse_job_header_name(job, 0)));
    MUST(lapse_job_priority(job) <= 255);
    MUST(lapse_job_created_ms(job) >= 0 && (body || !lapse_job_error(job, 0, NULL, NULL)));
    int64_t at_ms = -1;
    for (unsigned i = 0; lapse_job_error(job, i, &at_ms, NULL); i++) {
        MUST(at_ms >= 0);
    }
    const char *name;
    for (unsigned i = 0; (name = lapse_job_header_name(job, i)); i++) {
        MUST(*name && lapse_job_header(job, name));
    }
    MUST(!lapse_job_report(job, &len) || (body && len == row->report.len));
    series(job);
    batch(job, body);
    group(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct eat e = {data, size};
    struct job_row row = {.state = LAPSE_WAITING + eat_byte(&e) % 4};
    bool body = eat_byte(&e) & 1;

    row.score_ms = (int64_t)(eat_number(&e, 8) >> 11) * (eat_byte(&e) & 1 ? -1 : 1);
    there_and_back(1 + (unsigned)eat_number(&e, 4) % LAPSE_FOREVER,
                   (int64_t)eat_number(&e, 5) % JOB_TEN_YEARS_MS,
                   (int64_t)eat_number(&e, 5) % JOB_TEN_YEARS_MS,
                   (struct span){(const char *)e.at, e.left});

    size_t id_len = eat_byte(&e);
    size_t held_len = eat_byte(&e);
    char *id = eat_copy(&e, id_len, false);
    row.id = (struct span){id, (size_t)(e.at - data) < size || id_len == 0 ? id_len : 0};

    char *held = eat_copy(&e, held_len, false);
    row.attempt = (struct span){held, e.left ? held_len : 0};

    /* what stands behind the row is as free */
    row.errors = row.attempt;
    row.report = row.attempt;

    size_t len = e.left;
    char *record = eat_copy(&e, len, false);
    row.record = (struct span){record, len};

    char *room = malloc(job_texts_len("q", &row, body));
    struct lapse_job job = {.via = LAPSE_VIA_EVENT};
    MUST(room);
    job_fill(&job, "q", &row, room, body);
    ask(&job, &row, body);
    print(&job, 0);
    print(&job, 1);

    struct lapse_job *dup = lapse_job_dup(&job);
    MUST(dup);
    print(dup, 0);
    series(dup);
    group(dup);
    lapse_job_free(dup);
    free(room);
    free(record);
    free(held);
    free(id);

    return 0;
}

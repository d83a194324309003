/* SPDX-License-Identifier: MIT */
/* Structs of callers that were built against an older or a newer lapse.h. */
#include "handler.h"

struct newer_spec {
    struct lapse_spec s;
    int64_t extra;
};
struct newer_options {
    struct lapse_options o;
    int64_t extra;
};

Test(struct_sizes, a_newer_callers_field_must_be_0)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct newer_spec spec = {flow_job_spec("q", "a", 3600000), 0};

    spec.s.size = sizeof spec;
    cr_assert_eq(flow_spec(f, &spec.s, NULL), 0);
    spec.extra = 1;
    cr_assert_eq(lapse_schedule(f->l, &spec.s, NULL, NULL), LAPSE_EINVAL);

    struct newer_options options = {flow_options(f), 0};
    struct lapse *l = NULL;
    options.o.size = sizeof options;
    flow_close(f, flow_open(f, &options.o), 1000);
    options.extra = 1;
    cr_assert_eq(lapse_open(&l, f->loop, &options.o), LAPSE_EINVAL);
    cr_assert_null(l);

    struct {
        struct lapse_listen_options o;
        int64_t extra;
    } handle = {{.size = sizeof handle, .max_running = 1}, 1};

    struct {
        struct lapse_where w;
        int64_t extra;
    } where = {{.size = sizeof where, .state = LAPSE_DEAD}, 1};

    cr_assert_eq(lapse_cancel_all(f->l, "q", &where.w, 0, NULL, NULL), LAPSE_EINVAL);
    where.extra = 0;
    cr_assert_eq(lapse_cancel_all(f->l, "q", &where.w, 0, NULL, NULL), 0);

    struct flow_handler w = {.f = f};
    cr_assert_eq(lapse_listen(f->l, "q", &handle.o, flow_on_job, &w), LAPSE_EINVAL);
    handle.extra = 0;
    cr_assert_eq(lapse_listen(f->l, "q", &handle.o, flow_on_job, &w), 0);
    flow_end(f, "q");
}

Test(struct_sizes, an_older_callers_missing_fields_are_the_default)
{
    place_not_by_tls("the first lapse.h had no tls_ca");
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options options = flow_options(f);
    struct flow_job job;

    memset(&options.arm_ahead_ms, 0xff,
           sizeof options - offsetof(struct lapse_options, arm_ahead_ms));
    options.size = offsetof(struct lapse_options, arm_ahead_ms); /* as in the first lapse.h */
    f->l = flow_open(f, &options);

    struct lapse_spec s = flow_job_spec("q", "a", 3600000);
    memset(&s.tries, 0xff, sizeof s - offsetof(struct lapse_spec, tries));
    s.size = offsetof(struct lapse_spec, tries);
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_eq(job.tries, 10);
    flow_end(f, "q");
}

Test(struct_sizes, an_older_caller_sets_its_options_by_name)
{
    struct lapse_options o = lapse_options_init();

    memset(&o.arm_ahead_ms, 0x55, sizeof o - offsetof(struct lapse_options, arm_ahead_ms));
    o.size = offsetof(struct lapse_options, arm_ahead_ms);
    cr_assert_eq(lapse_options_set(&o, "lease_ms", "7s"), 0);
    cr_assert_eq(o.lease_ms, 7000);
    cr_assert_eq(lapse_options_set(&o, "arm_ahead_ms", "7s"), LAPSE_EINVAL);
    cr_assert_eq(o.arm_ahead_ms, 0x5555555555555555, "not its own memory");
}

Test(struct_sizes, statistics_are_written_as_far_as_the_caller_knows_them)
{
    struct flow *f = flow_start(FLOW_FULL);

    struct {
        struct lapse_stats s;
        uint64_t extra[4];
    } newer;

    struct lapse_stats s;
    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    memset(&newer, 0xff, sizeof newer);
    lapse_stats(f->l, &newer.s, sizeof newer);
    cr_assert(newer.s.scheduled == 1 && newer.s.claimed == 0 && newer.extra[0] == 0 &&
              newer.extra[3] == 0);
    memset(&s, 0xff, sizeof s);
    lapse_stats(f->l, &s, 2 * sizeof s.scheduled);
    cr_assert(s.scheduled == 1 && s.claimed == 0 && s.done == UINT64_MAX);
    lapse_stats(f->l, &s, 0);
    flow_end(f, "q");
}

/* SPDX-License-Identifier: MIT */
#include "redis/tls.h"
#include "redis/transport.h"
#include <criterion/criterion.h>

/* Whatever is built, nothing is sent in plain where TLS was asked for. */
Test(tls, without_it_nothing_is_begun)
{
    struct address a = {.tls = true, .host = (char[]){"127.0.0.1"}, .port = 1};
    struct transport t;
    struct tls tls;

    if (tls_built()) {
        cr_skip_test("built with TLS");
    }

    transport_init(&t, NULL, 1000, NULL, NULL);
    cr_assert_str_eq(transport_connect(&t, &a, "127.0.0.1"), TLS_NEEDS);
    cr_assert(!transport_is_open(&t));

    cr_assert(!tls_begin(&tls, &a, NULL));
    cr_assert_str_eq(tls.why, TLS_NEEDS);
    cr_assert_eq(tls_step(&tls), TLS_FAILED);
    tls_forget_errors();
    cr_assert_null(tls_error(&tls));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Under which host names browsers may come, and which pages are ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/admin/head.h"

static const char public_url[] = "https://queues.shop.example";

static bool host(const char *text, const char *url)
{
    const struct tl_admin_head head = {.host = text};
    return tl_admin_host_allowed(&head, url);
}

static void addresses_and_our_own_names(void **state)
{
    static const char *const good[] = {
        "127.0.0.1",   "127.0.0.1:8081", "[::1]:8081",          "localhost",
        "LOCALHOST:1", "10.1.2.3:80",    "queues.shop.example", "Queues.Shop.Example:443"};
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(host(good[i], public_url));
}

/* A name that its owner can let point to this machine. */
static void names_of_others(void **state)
{
    static const char *const bad[] = {"evil.example",
                                      "localhost.evil.example",
                                      "127.0.0.1.evil.example",
                                      "queues.shop.example.evil",
                                      "xlocalhost",
                                      "",
                                      "a b",
                                      "evil.example/127.0.0.1",
                                      "user@127.0.0.1",
                                      "shop.example"};
    (void)state;
    assert_false(host(NULL, public_url));
    assert_false(host("queues.shop.example", ""));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(host(bad[i], public_url));
}

static void this_machine(void **state)
{
    static const char *const here[] = {"localhost", "LOCALHOST:8081", "127.0.0.1:8081", "127.1.2.3",
                                       "[::1]:8081"};
    static const char *const elsewhere[] = {"192.0.2.7:8081",         "[2001:db8::1]:8081",
                                            "queues.shop.example",    "localhost.evil.example",
                                            "127.0.0.1.evil.example", ""};
    const struct tl_admin_head without = {0};
    (void)state;
    assert_false(tl_admin_host_loopback(&without));
    for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++)
        assert_true(tl_admin_host_loopback(&(struct tl_admin_head){.host = here[i]}));
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
        assert_false(tl_admin_host_loopback(&(struct tl_admin_head){.host = elsewhere[i]}));
}

struct row {
    const char *host, *origin, *site;
    bool own;
};

static void pages(void **state)
{
    static const struct row rows[] = {
        {"127.0.0.1:8081", NULL, NULL, true}, /* no browser */
        {"127.0.0.1:8081", "http://127.0.0.1:8081", "same-origin", true},
        {"127.0.0.1:8081", "http://127.0.0.1:8081", NULL, true},
        {"127.0.0.1:8081", NULL, "none", true},
        {"127.0.0.1:8081", "http://127.0.0.1:8082", NULL, false},
        {"127.0.0.1:8081", "http://127.0.0.1:8082", "same-site", false},
        {"127.0.0.1:8081", "http://localhost:8081", NULL, false},
        {"127.0.0.1:8081", "null", NULL, false},
        {"127.0.0.1:8081", "https://evil.example", "cross-site", false},
        {"127.0.0.1:8081", NULL, "cross-site", false},
        {"10.0.0.5:8081", "https://queues.shop.example", "same-origin", true}, /* a proxy */
        {"queues.shop.example", "https://queues.shop.example", NULL, true},
        {"queues.shop.example", "http://queues.shop.example:8080", NULL, false},
        {NULL, "http://127.0.0.1:8081", NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct tl_admin_head head = {
            .host = rows[i].host, .origin = rows[i].origin, .site = rows[i].site};
        assert_int_equal(tl_admin_origin_own(&head, public_url), rows[i].own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_and_our_own_names),
        cmocka_unit_test(names_of_others),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

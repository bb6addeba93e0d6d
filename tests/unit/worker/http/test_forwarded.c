/* SPDX-License-Identifier: Apache-2.0 */
/* The client behind proxies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/http/clients.h"

#define MOST 3

static const struct {
    const char *peer;
    const char *lines[MOST];
    const char *client;
} cases[] = {
    /* One line. */
    {"10.0.0.1", {"192.0.2.1"}, "192.0.2.1"},
    {"10.0.0.1", {"192.0.2.9, 192.0.2.1"}, "192.0.2.1"}, /* 192.0.2.9: the client's own claim */
    {"10.0.0.1", {"192.0.2.1,10.0.0.2 ,\t10.0.0.3"}, "192.0.2.1"},
    {"10.0.0.1", {"[2001:db8::1]:4711"}, "2001:db8::1"},
    {"10.0.0.1", {" , 192.0.2.1 ,, "}, "192.0.2.1"},
    /* Several lines are one list: a proxy that adds its own line is believed before others. */
    {"10.0.0.1", {"192.0.2.9", "192.0.2.1"}, "192.0.2.1"},
    {"10.0.0.1", {"192.0.2.9", "192.0.2.1, 10.0.0.2", "10.0.0.3"}, "192.0.2.1"},
    {"10.0.0.1", {"192.0.2.9", "", "192.0.2.1"}, "192.0.2.1"},
    {"10.0.0.1", {"192.0.2.1", "", ""}, "192.0.2.1"},
    /* The list ends, or has no address. */
    {"10.0.0.1", {NULL}, "10.0.0.1"},
    {"10.0.0.1", {"10.0.0.3,10.0.0.2"}, "10.0.0.3"},
    {"10.0.0.1", {"192.0.2.1, unknown"}, "10.0.0.1"},
    {"10.0.0.1", {"192.0.2.1, _hidden, 10.0.0.2"}, "10.0.0.2"},
    /* Nobody asked an untrusted peer. */
    {"192.0.2.7", {"192.0.2.1"}, "192.0.2.7"},
};

static struct tl_address walk(const char *peer, const char *const *lines, size_t n)
{
    struct tl_error err = {0};
    struct tl_networks *proxies = tl_networks_parse("10.0.0.0/8", &err);
    struct tl_address address;
    assert_non_null(proxies);
    assert_true(tl_address_parse(peer, &address));
    tl_forwarded_walk(proxies, lines, n, &address);
    tl_networks_free(&proxies);
    return address;
}

static void the_client_is_the_last_that_is_no_proxy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_address expected;
        size_t n = 0;
        while (n < MOST && cases[i].lines[n] != NULL)
            n++;
        struct tl_address found = walk(cases[i].peer, cases[i].lines, n);
        assert_true(tl_address_parse(cases[i].client, &expected));
        if (memcmp(&found, &expected, sizeof(found)) != 0)
            fail_msg("case %zu: another client than %s", i, cases[i].client);
    }
}

/* A client that sends kilobytes of addresses of its own changes nothing. */
static void a_long_list_is_walked_from_its_end(void **state)
{
    (void)state;
    char list[8192];
    struct tl_address expected;
    size_t length = 0;
    while (length + 64 < sizeof(list))
        length += (size_t)snprintf(list + length, sizeof(list) - length, "10.0.0.9, ");
    snprintf(list + length, sizeof(list) - length, "192.0.2.1, 10.0.0.2");
    const char *const line = list;
    struct tl_address found = walk("10.0.0.1", &line, 1);
    assert_true(tl_address_parse("192.0.2.1", &expected));
    assert_memory_equal(&found, &expected, sizeof(found));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_client_is_the_last_that_is_no_proxy),
        cmocka_unit_test(a_long_list_is_walked_from_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What each client holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/http/clients.h"

enum { MOST = 3 };

static struct tl_address parsed(const char *text)
{
    struct tl_address address;
    assert_true(tl_address_parse(text, &address));
    return address;
}

static bool may(const struct tl_clients *clients, const char *text)
{
    const struct tl_address address = parsed(text);
    return tl_clients_may(clients, &address);
}

static struct tl_client enter(struct tl_clients *clients, const char *text)
{
    const struct tl_address address = parsed(text);
    return tl_clients_enter(clients, &address);
}

static void an_address_has_its_limit_and_gives_back(void **state)
{
    struct tl_clients *clients = tl_clients_new(MOST);
    struct tl_client held[MOST];
    (void)state;
    for (int i = 0; i < MOST; i++) {
        assert_true(may(clients, "192.0.2.1"));
        held[i] = enter(clients, "192.0.2.1");
    }
    assert_false(may(clients, "192.0.2.1"));
    assert_false(may(clients, "::ffff:192.0.2.1"));
    assert_true(may(clients, "192.0.2.2"));
    tl_clients_leave(clients, held[1]);
    assert_true(may(clients, "192.0.2.1"));
    tl_clients_leave(clients, held[0]);
    tl_clients_leave(clients, held[2]);
    for (int i = 0; i < MOST; i++)
        (void)enter(clients, "192.0.2.1");
    assert_false(may(clients, "192.0.2.1"));
    tl_clients_free(&clients);
    tl_clients_free(&clients); /* once is enough, twice does no harm */
}

static void an_ipv6_customer_is_a_56_and_a_site_is_a_48(void **state)
{
    struct tl_clients *clients = tl_clients_new(MOST);
    (void)state;
    for (int i = 0; i < MOST; i++)
        (void)enter(clients, "2001:db8:1:aa00::1");
    assert_false(may(clients, "2001:db8:1:aaff::2")); /* the same /56 */
    assert_true(may(clients, "2001:db8:1:ab00::1"));
    static const char *const others[] = {"2001:db8:1:100::1", "2001:db8:1:200::1",
                                         "2001:db8:1:300::1"};
    for (int i = 0; i < 3 * MOST; i++)
        (void)enter(clients, others[i % 3]);
    assert_false(may(clients, "2001:db8:1:ab00::1")); /* four times the limit in one /48 */
    assert_true(may(clients, "2001:db8:2:ab00::1"));
    tl_clients_free(&clients);
}

static void without_a_limit_nothing_is_counted(void **state)
{
    struct tl_clients *clients = tl_clients_new(0);
    (void)state;
    struct tl_client client = enter(clients, "192.0.2.1");
    assert_int_equal(client.customer, 0);
    assert_int_equal(client.site, 0);
    assert_true(may(clients, "192.0.2.1"));
    tl_clients_leave(clients, client);
    tl_clients_free(&clients);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_its_limit_and_gives_back),
        cmocka_unit_test(an_ipv6_customer_is_a_56_and_a_site_is_a_48),
        cmocka_unit_test(without_a_limit_nothing_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The webhooks of the configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/checks.h"
#include "common/config/config.h"
#include "common/config/webhook_table.h"

#define WEBHOOK "{name: a, url: https://h.example/x, secret_file: s, events: [paused]"

static void webhooks_are_read_in_order(void **state)
{
    static const char yaml[] = "webhooks:\n"
                               "- name: shop\n"
                               "  url: https://shop.example/webhooks\n"
                               "  secret_file: secrets/shop\n"
                               "  events: [opened, threshold, admitted]\n"
                               "  threshold: 10000\n"
                               "  queues: [sale-*, vip]\n"
                               "- {name: b, url: 'http://127.0.0.1:1/', secret_file: /s, events: "
                               "[store_lost], timeout: 2s}\n";
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_parse("t.yaml", yaml, strlen(yaml), &err);
    (void)state;
    if (config == NULL) {
        fail_msg("%s", err.text);
        return;
    }
    assert_int_equal(config->n_webhooks, 2);
    const struct tl_webhook_config *webhook = &config->webhooks[0];
    assert_string_equal(webhook->name, "shop");
    assert_int_equal(webhook->timeout_ms, 10000);
    assert_true(tl_webhook_wants(webhook, TL_WEBHOOK_OPENED) &&
                tl_webhook_wants(webhook, TL_WEBHOOK_ADMITTED));
    assert_false(tl_webhook_wants(webhook, TL_WEBHOOK_PAUSED));
    assert_true(tl_webhook_watches(webhook, "sale-1") && tl_webhook_watches(webhook, "vip"));
    assert_false(tl_webhook_watches(webhook, "sale") || tl_webhook_watches(webhook, "vip2"));
    assert_int_equal(config->webhooks[1].timeout_ms, 2000);
    assert_true(tl_webhook_watches(&config->webhooks[1], "anything"));
    tl_config_free(&config);
}

static void patterns_match_as_they_say(void **state)
{
    static const struct {
        const char *pattern, *queue;
        bool matches;
    } rows[] = {
        {"*", "a", true},
        {"a*c", "abc", true},
        {"a*c", "ac", true},
        {"a*c", "abcd", false},
        {"*a*b*", "xaxbx", true},
        {"*a*b*", "xbxa", false},
        {"a", "a", true},
        {"a", "ab", false},
        {"b a", "a", true},
        {"*-vip", "sale-vip", true},
        {"**", "x", true},
        {"a*a*a*a*b", "aaaaaaaaaaaaac", false},
        /* What receives the webhooks of a shop must not take a rehearsal for the sale. */
        {"*", "rehearsal-sale-1a2b3c", false},
        {"*sale*", "rehearsal-sale-1a2b3c", false},
        {"* rehearsal-*", "rehearsal-sale-1a2b3c", true},
        {"rehearsal-sale-*", "rehearsal-sale-1a2b3c", true},
        {"*", "rehearsal-hall", true}, /* the name of a queue like any other */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tl_webhook_config webhook = {0};
        snprintf(webhook.queues, sizeof(webhook.queues), "%s", rows[i].pattern);
        if (tl_webhook_watches(&webhook, rows[i].queue) != rows[i].matches)
            fail_msg("%s %s", rows[i].pattern, rows[i].queue);
    }
}

static void a_wrong_webhook_is_refused_with_what_is_wrong(void **state)
{
    static const struct {
        const char *yaml, *says;
    } rows[] = {
        {"webhooks: {a: b}", "expected a list of webhooks"},
        {"webhooks: [x]", "expected a mapping"},
        {"webhooks: [{name: a}]", "needs name, url and secret_file"},
        {"webhooks: [{name: a, url: https://h/, secret_file: s}]", "needs events"},
        {"webhooks: [" WEBHOOK ", queues: ''}]", "must not be empty"},
        {"webhooks: [" WEBHOOK ", colour: red}]", "webhooks[0]: unknown setting \"colour\""},
        {"webhooks: [" WEBHOOK "}, " WEBHOOK "}]", "two webhooks \"a\""},
        {"webhooks: [{name: a, url: https://h/, secret_file: s, events: [threshold]}]",
         "needs threshold"},
        {"webhooks: [{name: a, url: https://h/, secret_file: s, events: [joined]}]",
         "\"joined\" is not one of"},
        {"webhooks: [{name: a, url: http://h/, secret_file: s, events: [paused]}]",
         "must be https://"},
        {"webhooks: [{name: a, url: 'ftp://h/', secret_file: s, events: [paused]}]",
         "not an address"},
        {"webhooks: [{name: a, url: 'https://u:p@h/', secret_file: s, events: [paused]}]",
         "not an address"},
        {"webhooks: [{name: 'a b', url: https://h/, secret_file: s, events: [paused]}]",
         "not a name"},
        {"webhoks: []", "did you mean \"webhooks\"?"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tl_error err = {0};
        const struct tl_config *config =
            tl_config_parse("t.yaml", rows[i].yaml, strlen(rows[i].yaml), &err);
        if (config != NULL || strstr(err.text, rows[i].says) == NULL)
            fail_msg("%s\n%s", rows[i].yaml, err.text);
    }
}

static void at_most_twenty(void **state)
{
    char yaml[8192] = "webhooks:\n";
    (void)state;
    for (int i = 0; i < TL_WEBHOOKS_MAX + 1; i++) {
        size_t used = strlen(yaml);
        snprintf(yaml + used, sizeof(yaml) - used,
                 "- {name: h%d, url: https://h/, secret_file: s, events: [paused]}\n", i);
        struct tl_error err = {0};
        const struct tl_config *config = tl_config_parse("t.yaml", yaml, strlen(yaml), &err);
        assert_true((config != NULL) == (i < TL_WEBHOOKS_MAX));
        tl_config_free(&config);
    }
}

static void plain_http_is_for_named_hosts(void **state)
{
    (void)state;
    assert_true(tl_url_is_protected("https://h.example/", ""));
    assert_true(tl_url_is_protected("http://[::1]:80/", ""));
    assert_true(tl_url_is_protected("http://inner:8080/x", "other inner"));
    assert_false(tl_url_is_protected("http://inner.example/", "other inner"));
    assert_false(tl_url_is_protected("http://h.example/", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(webhooks_are_read_in_order),
        cmocka_unit_test(patterns_match_as_they_say),
        cmocka_unit_test(a_wrong_webhook_is_refused_with_what_is_wrong),
        cmocka_unit_test(at_most_twenty),
        cmocka_unit_test(plain_http_is_for_named_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/config.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct bad {
    const char *yaml;
    const char *message;
};

static const struct tl_config *parse(const char *yaml)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_parse("t.yaml", yaml, strlen(yaml), &err);
    if (config == NULL)
        fail_msg("%s\n%s", yaml, err.text);
    return config;
}

static void check_refused(const char *yaml, size_t length, const char *message)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_parse("t.yaml", yaml, length, &err);
    if (config != NULL)
        fail_msg("accepted, although it should be refused with %s:\n%s", message, yaml);
    assert_string_equal(err.text, message);
    assert_int_equal(err.kind, TL_ERR_INVALID);
}

static void check_all_refused(const struct bad *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_refused(cases[i].yaml, strlen(cases[i].yaml), cases[i].message);
}

static void keys_are_checked(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"rediss:\n  url: x\n", "t.yaml:1:1: unknown setting \"rediss\"; did you mean \"redis\"?"},
        {"queue:\n", "t.yaml:1:1: unknown setting \"queue\"; did you mean \"queues\"?"},
        {"telemetry: on\n", "t.yaml:1:1: unknown setting \"telemetry\""},
        {"http:\n  lisen: 0.0.0.0:1\n",
         "t.yaml:2:3: http: unknown setting \"lisen\"; did you mean \"listen\"?"},
        {"http:\n  batch: 1\n", "t.yaml:2:3: http: unknown setting \"batch\""},
        {"queues:\n  demo:\n    capasity: 3\n",
         "t.yaml:3:5: queues.demo: unknown setting \"capasity\"; did you mean \"capacity\"?"},
        {"queues:\n  demo:\n    rate: {amdit: 3}\n",
         "t.yaml:3:12: queues.demo.rate: unknown setting \"amdit\"; did you mean \"admit\"?"},
        {"queues:\n  demo:\n    admit: 3\n", "t.yaml:3:5: queues.demo: unknown setting \"admit\""},
        {"brand:\n  template: own.html\n", "t.yaml:2:3: brand: unknown setting \"template\""},
        {"queues:\n  page.template:\n    template: x\n",
         "t.yaml:3:5: queues.page.template: unknown setting \"template\""},
        {"redis.urll: x\n",
         "t.yaml:1:1: unknown setting \"redis.urll\"; did you mean \"redis.url\"?"},
        {"redis: {timeout: 1s}\nredis.timeout: 2s\n", "t.yaml:2:1: redis.timeout: given twice"},
        {"queues: {a: {page.titel: x}}\n",
         "t.yaml:1:14: queues.a: unknown setting \"page.titel\"; did you mean \"page.title\"?"},
        {"\"\": x\n", "t.yaml:1:1: unknown setting \"\""},
        {"<<: {redis: {}}\n", "t.yaml:1:1: unknown setting \"<<\""},
        {"\"a\\e[1mb\": x\n", "t.yaml:1:1: unknown setting \"a?[1mb\""},
        {"redis: {url: a}\nhttp:\nredis: {timeout: 1s}\n",
         "t.yaml:3:1: \"redis\" is given twice; it is already in line 1"},
        {"http:\n  max_body: 1KiB\n  max_body: 2KiB\n",
         "t.yaml:3:3: \"max_body\" is given twice; it is already in line 2"},
        {"queues:\n  a:\n  b:\n  a:\n",
         "t.yaml:4:3: \"a\" is given twice; it is already in line 2"},
        {"? [a]\n: b\n", "t.yaml:1:3: a key must be plain text, not a mapping or a list"},
    };
    check_all_refused(cases, COUNT(cases));
}

static void shapes_are_checked(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"just text\n", "t.yaml:1:1: expected a mapping of settings, found a plain value"},
        {"- a\n", "t.yaml:1:1: expected a mapping of settings, found a list"},
        {"redis: localhost\n",
         "t.yaml:1:8: redis: expected a mapping of settings, found a plain value"},
        {"redis: [url]\n", "t.yaml:1:8: redis: expected a mapping of settings, found a list"},
        {"redis:\n  url: {host: a}\n",
         "t.yaml:2:8: redis.url: expected a text (at most 511 bytes), found a mapping"},
        {"http:\n  listen: [8080]\n",
         "t.yaml:2:11: http.listen: expected an address (host:port or [IPv6 address]:port, port 0 "
         "to 65535), found a list"},
        {"queues: [a, b]\n",
         "t.yaml:1:9: queues: expected a mapping from names to settings, found a list"},
        {"queues: {a: 300}\n",
         "t.yaml:1:13: queues.a: expected a mapping of settings, found a plain value"},
        {"queues: {a: {rate: 5}}\n",
         "t.yaml:1:20: queues.a.rate: expected a mapping of settings, found a plain value"},
        {"queues: {a: {lanes: {vip: 1}}}\n",
         "t.yaml:1:21: queues.a.lanes: expected a list (1 to 16 names of a-z, 0-9, '-' and '_', "
         "each at most 31 bytes), found a mapping"},
        {"queues: {a: {lanes: [vip, [b]]}}\n",
         "t.yaml:1:27: queues.a.lanes: expected a word without commas and spaces, found a list"},
        {"queues: {a: {lanes: ['vip,b']}}\n",
         "t.yaml:1:22: queues.a.lanes: expected a word without commas and spaces, found a plain "
         "value"},
        {"queues: {a: {closed_text: {english: x}}}\n",
         "t.yaml:1:28: queues.a.closed_text: \"english\" is not the code of a language, such as "
         "en, ko or zh-Hant"},
        {"queues: {a: {closed_text: {en: [x]}}}\n",
         "t.yaml:1:32: queues.a.closed_text: expected a text, found a list"},
    };
    check_all_refused(cases, COUNT(cases));
}

static void values_are_checked(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"worker:\n  processes: two\n",
         "t.yaml:2:14: worker.processes: \"two\" is not a whole number (0 to 256)"},
        {"worker:\n  processes: 2.0\n",
         "t.yaml:2:14: worker.processes: \"2.0\" is not a whole number (0 to 256)"},
        {"worker:\n  processes:\n",
         "t.yaml:2:13: worker.processes: \"\" is not a whole number (0 to 256)"},
        {"redis: {timeout: 5}\n",
         "t.yaml:1:18: redis.timeout: \"5\" is not a duration such as 250ms, "
         "10s, 5m, 2h or 1d (10ms to 5m)"},
        {"http: {max_body: big}\n",
         "t.yaml:1:18: http.max_body: \"big\" is not a size such as 512, "
         "64KiB or 1MB (256B to 1MiB)"},
        {"queues: {a: {adaptive: {cut: 0.305}}}\n", "t.yaml:1:30: queues.a.adaptive.cut: \"0.305\" "
                                                    "is finer than a whole per cent (1% to 90%)"},
        {"queues: {a: {adaptive: {cut: most}}}\n",
         "t.yaml:1:30: queues.a.adaptive.cut: \"most\" is not a number such as 0.9 or 90% (1% to "
         "90%)"},
        {"queues: {a: {session_sliding: yes}}\n",
         "t.yaml:1:31: queues.a.session_sliding: \"yes\" is neither true nor false"},
        {"queues: {a: {opens_at: 1796122800000}}\n",
         "t.yaml:1:24: queues.a.opens_at: \"1796122800000\" is not a time with an offset such as "
         "2026-12-01T20:00:00+09:00 (RFC 3339 with an offset, from 1970 on; or empty)"},
        {"log: {level: loud}\n",
         "t.yaml:1:14: log.level: \"loud\" is not one of debug, info, warn, error"},
        {"log: {format: xml}\n", "t.yaml:1:15: log.format: \"xml\" is not one of logfmt, json"},
        {"queues: {a: {policy: bank}}\n",
         "t.yaml:1:22: queues.a.policy: \"bank\" is not one of counter, rate, both"},
    };
    check_all_refused(cases, COUNT(cases));
}

static void bounds_are_checked(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"http:\n  max_body: 255\n",
         "t.yaml:2:13: http.max_body: \"255\" is out of bounds (256B to 1MiB)"},
        {"http:\n  max_body: 1025KiB\n",
         "t.yaml:2:13: http.max_body: \"1025KiB\" is out of bounds (256B to 1MiB)"},
        {"http:\n  max_body: 99999999999999999999\n",
         "t.yaml:2:13: http.max_body: \"99999999999999999999\" is too large a size (256B to 1MiB)"},
        {"worker: {processes: 257}\n",
         "t.yaml:1:21: worker.processes: \"257\" is out of bounds (0 to 256)"},
        {"queues: {a: {capacity: 10000001}}\n",
         "t.yaml:1:24: queues.a.capacity: \"10000001\" is out of bounds (0 to 10000000)"},
        {"queues: {a: {capacity: -1}}\n",
         "t.yaml:1:24: queues.a.capacity: \"-1\" is not a whole number (0 to 10000000)"},
        {"queues: {a: {reopen: {margin: 51%}}}\n",
         "t.yaml:1:31: queues.a.reopen.margin: \"51%\" is out of bounds (0% to 50%)"},
        {"queues: {a: {adaptive: {load_max: 80}}}\n",
         "t.yaml:1:35: queues.a.adaptive.load_max: \"80\" is not clear: write 80% or 0.80 (1% to "
         "100%)"},
        {"queues: {a: {adaptive: {load_max: 1}}}\n",
         "t.yaml:1:35: queues.a.adaptive.load_max: \"1\" is not clear: write 1% or 0.01 (1% to "
         "100%)"},
        {"queues: {a: {adaptive: {load_max: 5.0}}}\n",
         "t.yaml:1:35: queues.a.adaptive.load_max: \"5.0\" is out of bounds (1% to 100%)"},
        {"queues: {a: {probe: {full: 0}}}\n", "t.yaml:1:10: queues.a: probe.full must be above 0"},
        {"challenge_service: {min_score: 1.1}\n",
         "t.yaml:1:32: challenge_service.min_score: \"1.1\" is out of bounds (0 to 1)"},
        {"queues: {a: {session_ttl: 99ms}}\n",
         "t.yaml:1:27: queues.a.session_ttl: \"99ms\" is out of bounds (100ms to 7d)"},
        {"queues: {a: {waiting_ttl: 8d}}\n",
         "t.yaml:1:27: queues.a.waiting_ttl: \"8d\" is out of bounds (1s to 7d)"},
        {"queues: {a: {opens_at: 1969-12-31T23:59:59Z}}\n",
         "t.yaml:1:24: queues.a.opens_at: \"1969-12-31T23:59:59Z\" is out of bounds (RFC 3339 with "
         "an "
         "offset, from 1970 on; or empty)"},
    };
    check_all_refused(cases, COUNT(cases));
}

/* Where the queue is written, whatever is missing elsewhere. */
static void a_challenge_service_is_checked(void **state)
{
    (void)state;
#define HTTPS                                                                                      \
    "not an address that starts with https:// and names a host, in ASCII without spaces, quotes, " \
    "\";\", \",\" and \"#\""
    static const struct bad cases[] = {
        {"queues:\n  a:\n    challenge: external\n",
         "t.yaml:3:16: queues.a: challenge: external needs challenge_service.site_key"},
        {"challenge_service: {site_key: k}\nqueues: {b: {}, a: {challenge: external}}\n",
         "t.yaml:2:32: queues.a: challenge: external needs secrets.challenge_secret, a file with "
         "the provider's secret"},
        {"challenge_service: {site_key: 'a b'}\n",
         "t.yaml:1:31: challenge_service.site_key: not a site key: it has only letters, digits, "
         "\"_\" and \"-\""},
        {"challenge_service: {verify_url: 'http://shop.example/v'}\n",
         "t.yaml:1:33: challenge_service.verify_url: must be https://; http:// is for 127.0.0.1, "
         "[::1] and localhost only"},
        {"challenge_service: {verify_url: 'http://127.0.0.1.shop.example/v'}\n",
         "t.yaml:1:33: challenge_service.verify_url: must be https://; http:// is for 127.0.0.1, "
         "[::1] and localhost only"},
        {"challenge_service: {verify_url: 'ftp://a'}\n",
         "t.yaml:1:33: challenge_service.verify_url: " HTTPS},
        {"challenge_service: {script_url: \"https://a/x;y\"}\n",
         "t.yaml:1:33: challenge_service.script_url: " HTTPS},
        {"challenge_service: {script_url: \"https://user@a/x\"}\n",
         "t.yaml:1:33: challenge_service.script_url: " HTTPS},
        {"challenge_service: {hostname: 'https://a'}\n",
         "t.yaml:1:31: challenge_service.hostname: not the name of a host, such as shop.example, "
         "without scheme and port"},
        {"challenge_service: {min_score: 0.5}\n",
         "t.yaml: challenge_service.min_score: only recaptcha (version 3) has a score"},
        {"challenge_service: {timeout: 31s}\n",
         "t.yaml:1:30: challenge_service.timeout: \"31s\" is out of bounds (100ms to 30s)"},
        {"challenge_service: {provider: other}\n",
         "t.yaml:1:31: challenge_service.provider: \"other\" is not one of turnstile, hcaptcha, "
         "recaptcha"},
    };
    check_all_refused(cases, COUNT(cases));
    struct tl_error err = {0};
    static const char good[] =
        "challenge_service: {site_key: 1x00-_A, verify_url: 'http://[::1]:1/v', provider: "
        "recaptcha, min_score: 0.5}\nsecrets: {challenge_secret: s}\n"
        "queues: {a: {challenge: external}}\n";
    const struct tl_config *config = tl_config_parse("t.yaml", good, strlen(good), &err);
    if (config == NULL) {
        fail_msg("%s", err.text);
        return; /* never reached, which clang-tidy does not know */
    }
    assert_true(tl_config_has_service(config, NULL));
    assert_int_equal(config->queues[0].settings.challenge, TL_CHALLENGE_EXTERNAL);
    tl_config_free(&config);
}

static void texts_and_names_are_checked(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"brand: {timezone: 'Asia Seoul'}\n", "t.yaml:1:19: brand.timezone: not the name of a time "
                                              "zone, such as Asia/Seoul or Europe/Berlin"},
        {"http: {public_url: ''}\n",
         "t.yaml:1:20: http.public_url: must not be empty (1 to 255 bytes)"},
        {"redis: {key_prefix: '12345678901234567890123456789012'}\n",
         "t.yaml:1:21: redis.key_prefix: is 32 bytes long; at most 31 fit"},
        {"brand: {name: "
         "'123456789012345678901234567890123456789012345678901234567890123456789012345678901'}\n",
         "t.yaml:1:15: brand.name: is 81 bytes long; at most 80 fit"},
        {"redis: {key_prefix: 'a{b'}\n",
         "t.yaml:1:21: redis.key_prefix: must be ASCII without spaces and braces"},
        {"redis: {url: \"redis://h\\n\"}\n",
         "t.yaml:1:14: redis.url: holds a control character, which is not allowed"},
        {"http: {public_url: 'http://a/'}\n", "t.yaml:1:20: http.public_url: paths are appended to "
                                              "this address: leave off the \"/\" at its "
                                              "end, \"?\" and \"#\""},
        {"http: {public_url: a.example}\n", "t.yaml:1:20: http.public_url: not an address that "
                                            "starts with http:// or https:// and names "
                                            "a host, in ASCII without spaces"},
        {"queues: {a: {target_url: 'javascript:alert(1)'}}\n",
         "t.yaml:1:26: queues.a.target_url: not an address that starts with http:// or https:// "
         "and "
         "names a host, in ASCII without spaces"},
        {"queues: {a: {lanes: []}}\n", "t.yaml:1:21: queues.a.lanes: must not be empty (1 "
                                       "to 16 names of a-z, 0-9, '-' and "
                                       "'_', each at most 31 bytes)"},
        {"queues: {a: {lanes: [VIP]}}\n", "t.yaml:1:21: queues.a.lanes: \"VIP\" is not a lane's "
                                          "name (1 to 16 names of a-z, 0-9, '-' and "
                                          "'_', each at most 31 bytes)"},
        {"queues: {a: {lanes: [abcdefghijklmnopqrstuvwxyz-012345]}}\n",
         "t.yaml:1:21: queues.a.lanes: \"abcdefghijklmnopqrstuvwxyz-012345\" is not a lane's name "
         "(1 to "
         "16 names of a-z, 0-9, '-' and '_', each at most 31 bytes)"},
        {"queues: {a: {lanes: [a, b, a]}}\n",
         "t.yaml:1:21: queues.a.lanes: lane \"a\" is named twice"},
        {"queues: {a: {lanes: [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q]}}\n",
         "t.yaml:1:21: queues.a.lanes: more than 16 lanes"},
        {"queues: {a: {default_lane: gold, lanes: [vip, normal]}}\n",
         "t.yaml:1:28: queues.a.default_lane: \"gold\" is not one of the lanes: vip, normal"},
        {"queues: {Demo: {}}\n", "t.yaml:1:10: \"Demo\" is not a queue's name (1 to 63 of a-z, "
                                 "0-9, '.', '_' and '-', beginning "
                                 "with a letter or digit)"},
    };
    check_all_refused(cases, COUNT(cases));
}

static void listening_addresses_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",      "8080",      ":8080",       "0.0.0.0:", "0.0.0.0:65536", "::1:8080",
        "[::1]", "[::1]8080", "[fe80::g]:1", "[]:1",     "[1.2.3.4]:1",   "a b:1",
        "a/b:1", "a:-1",      "a:+1",        "a:0x10"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        char yaml[64];
        snprintf(yaml, sizeof(yaml), "http:\n  listen: '%s'\n", bad[i]);
        struct tl_error err = {0};
        assert_null(tl_config_parse("t.yaml", yaml, strlen(yaml), &err));
        assert_non_null(strstr(err.text, "t.yaml:2:11: http.listen: \""));
        assert_non_null(strstr(err.text,
                               "\" is not a listening address (host:port or [IPv6 address]:port, "
                               "port 0 to 65535)"));
    }
}

static void bounds_across_settings_are_checked(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"queues:\n  a: {policy: rate}\n",
         "t.yaml:2:3: queues.a: policy \"rate\" needs a rate: set rate.admit, and rate.every (10s "
         "unless set)"},
        {"queues:\n  a: {policy: both, rate: {every: 5s}}\n",
         "t.yaml:2:3: queues.a: policy \"both\" needs a rate: set rate.admit, and rate.every (10s "
         "unless set)"},
        {"queues:\n  a: {rate: {admit: 9, shape: batches, burst: 2}}\n",
         "t.yaml:2:3: queues.a: rate.burst (2) is for the shape \"smooth\": a batch is never "
         "larger "
         "than rate.admit"},
        {"queues:\n  a: {session_ttl: 10m, session_max: 90s, session_sliding: true}\n",
         "t.yaml:2:3: queues.a: session_max (90s) must not be shorter than session_ttl (10m) with "
         "session_sliding"},
        {"http: {listen: 127.0.0.1:8081}\n", "t.yaml: http.listen and admin.worker are both "
                                             "127.0.0.1:8081; the worker needs two different "
                                             "addresses, and visitors must not reach the second"},
    };
    check_all_refused(cases, COUNT(cases));
    const struct tl_config *config =
        parse("http: {listen: 127.0.0.1:0}\nadmin: {worker: 127.0.0.1:0}\n" /* two free ports */
              "queues: {a: {session_ttl: 2h, session_max: 1h}}\n");         /* not sliding */
    tl_config_free(&config);
}

static void what_yaml_can_but_a_setting_need_not_is_refused(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"redis: &r {url: a}\n",
         "t.yaml:1:8: anchors (&name) are not allowed; write the value out"},
        {"&k redis: {url: a}\n",
         "t.yaml:1:1: anchors (&name) are not allowed; write the value out"},
        {"redis: {url: *r}\n", "t.yaml:1:14: aliases (*name) are not allowed; write the value out"},
        {"*r : a\n", "t.yaml:1:1: aliases (*name) are not allowed; write the value out"},
        {"redis: {url: !!str a}\n",
         "t.yaml:1:14: tags (!name) are not allowed; write the value out"},
        {"redis: ! {url: a}\n", "t.yaml:1:8: tags (!name) are not allowed; write the value out"},
        {"queues: {a: {lanes: !x [a]}}\n",
         "t.yaml:1:21: tags (!name) are not allowed; write the value out"},
        {"redis: {url: a}\n---\nhttp: {}\n",
         "t.yaml:2:1: a second document begins here; only one is allowed"},
        {"redis: {url: \"a\\0b\"}\n", "t.yaml:1:14: a zero byte is not allowed in text"},
        {"\"redis\\0\": {}\n", "t.yaml:1:1: a zero byte is not allowed in text"},
        {"a: [[[[[[[[1]]]]]]]]\n", "t.yaml:1:11: mappings and lists nested deeper than 8 levels"},
    };
    check_all_refused(cases, COUNT(cases));
}

static void what_is_no_yaml_is_refused(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"redis:\n\turl: a\n", "t.yaml:2:1: not valid YAML: found character that cannot start any "
                               "token, while scanning for the next token"},
        {"redis: {url: \"a\n", "t.yaml:2:1: not valid YAML: found unexpected end of stream, while "
                               "scanning a quoted scalar"},
        {"redis: {url: a\n", "t.yaml:2:1: not valid YAML: did not find expected ',' or '}', while "
                             "parsing a flow mapping"},
        {"http:\n  listen: [::1]:8080\n", "t.yaml:2:12: not valid YAML: did not find expected node "
                                          "content, while parsing a flow node"},
        {"redis: {}\n# \xc3\xa4 and \xff\n",
         "t.yaml:2:9: not UTF-8 text: invalid leading UTF-8 octet"},
        {"redis: \x01\n", "t.yaml:1:8: not UTF-8 text: control characters are not allowed"},
    };
    check_all_refused(cases, COUNT(cases));
    check_refused("redis:\0", 7, "t.yaml:1:7: not UTF-8 text: control characters are not allowed");
}

/* n times `piece`, with its number in place of a "%d". */
static char *repeat(const char *head, const char *piece, int n)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    fputs(head, out);
    for (int i = 0; i < n; i++) {
        const char *mark = strstr(piece, "%d");
        if (mark != NULL)
            fprintf(out, "%.*s%d%s", (int)(mark - piece), piece, i, mark + 2);
        else
            fputs(piece, out);
    }
    assert_int_equal(fclose(out), 0);
    return text;
}

static void size_and_number_of_entries_are_bounded(void **state)
{
    (void)state;
    char *yaml = repeat("", "#23456789012345\n", 65536);
    assert_int_equal(strlen(yaml), 1024 * 1024);
    const struct tl_config *config = parse(yaml);
    tl_config_free(&config);
    free(yaml);

    yaml = repeat("#", "#23456789012345\n", 65536);
    check_refused(yaml, strlen(yaml), "t.yaml:1:1: larger than 1 MiB (1048576 bytes)");
    free(yaml);

    yaml = repeat("queues:\n", "  q%d:\n", 1024);
    config = parse(yaml);
    assert_int_equal(config->n_queues, 1024);
    assert_string_equal(config->queues[1023].name, "q1023");
    tl_config_free(&config);
    free(yaml);

    yaml = repeat("queues:\n", "  q%d:\n", 1025);
    check_refused(yaml, strlen(yaml), "t.yaml:1026:3: more than 1024 entries in one place");
    free(yaml);

    yaml = repeat("redis: {url: ", "[", 1000);
    check_refused(yaml, strlen(yaml),
                  "t.yaml:1:20: mappings and lists nested deeper than 8 levels");
    free(yaml);
}

static void a_long_file_name_keeps_its_end(void **state)
{
    (void)state;
    char *name = repeat("", "directory/", 40);
    struct tl_error err = {0};
    assert_null(tl_config_parse(name, "redis: 1\n", 9, &err));
    assert_non_null(strstr(err.text, "...directory/"));
    assert_non_null(strstr(err.text,
                           "directory/:1:8: redis: expected a mapping of settings, found a "
                           "plain value"));
    free(name);
}

static void sentinels_are_checked(void **state)
{
    (void)state;
    struct tl_error err = {0};
    const char *yaml = "redis:\n  url: redis+sentinel://:hunter2@s1:26379,s2\n";
    assert_null(tl_config_parse("t.yaml", yaml, strlen(yaml), &err));
    assert_non_null(strstr(err.text, "t.yaml:2:8: redis.url: "));
    assert_non_null(strstr(err.text, "name of the master"));
    assert_null(strstr(err.text, "hunter2"));
}

static void tls_needs_no_special_build(void **state)
{
    (void)state;
    static const char *const urls[] = {"rediss://h", "rediss+sentinel://h/m"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        char yaml[64];
        struct tl_error err = {0};
        snprintf(yaml, sizeof(yaml), "redis:\n  url: %s\n", urls[i]);
        const struct tl_config *config = tl_config_parse("t.yaml", yaml, strlen(yaml), &err);
        if (config == NULL)
            fail_msg("%s", err.text);
        tl_config_free(&config);
    }
}

static void a_refused_secret_is_not_repeated(void **state)
{
    (void)state;
    const char *yaml = "redis: {url: \"redis://user:hunter2@host\\n\"}\n";
    struct tl_error err = {0};
    assert_null(tl_config_parse("t.yaml", yaml, strlen(yaml), &err));
    assert_null(strstr(err.text, "hunter2"));
}

static void an_error_may_be_ignored(void **state)
{
    (void)state;
    assert_null(tl_config_parse("t.yaml", "a", 1, NULL));
    assert_null(tl_config_parse("t.yaml", "a: [", 4, NULL));
    assert_null(tl_config_parse("t.yaml", "worker: {processes: x}", 22, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_checked),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(values_are_checked),
        cmocka_unit_test(bounds_are_checked),
        cmocka_unit_test(a_challenge_service_is_checked),
        cmocka_unit_test(texts_and_names_are_checked),
        cmocka_unit_test(listening_addresses_are_checked),
        cmocka_unit_test(bounds_across_settings_are_checked),
        cmocka_unit_test(what_yaml_can_but_a_setting_need_not_is_refused),
        cmocka_unit_test(what_is_no_yaml_is_refused),
        cmocka_unit_test(size_and_number_of_entries_are_bounded),
        cmocka_unit_test(a_long_file_name_keeps_its_end),
        cmocka_unit_test(sentinels_are_checked),
        cmocka_unit_test(tls_needs_no_special_build),
        cmocka_unit_test(a_refused_secret_is_not_repeated),
        cmocka_unit_test(an_error_may_be_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

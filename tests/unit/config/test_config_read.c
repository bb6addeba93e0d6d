/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/config/config.h"
#include "common/config/document.h"
#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/config/table.h"
#include "common/config/texts.h"
#include "common/config/value.h"
#include "common/config/yaml.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct tl_config *parse(const char *yaml)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_parse("t.yaml", yaml, strlen(yaml), &err);
    if (config == NULL)
        fail_msg("%s\n%s", yaml, err.text);
    return config;
}

static void an_empty_file_gives_the_defaults(void **state)
{
    (void)state;
    static const char *const empty[] = {"",
                                        "# nothing\n",
                                        "---\n",
                                        "~\n",
                                        "{}\n",
                                        "redis:\nqueues:\n",
                                        "\xef\xbb\xbf# a byte order mark\n",
                                        "%YAML 1.1\n---\n{}\n"};
    for (size_t i = 0; i < COUNT(empty); i++) {
        const struct tl_config *config = parse(empty[i]);
        assert_string_equal(config->redis.url, "");
        assert_string_equal(config->redis.key_prefix, "tl:");
        assert_int_equal(config->redis.timeout_ms, 2000);
        assert_string_equal(config->http.listen.host, "0.0.0.0");
        assert_int_equal(config->http.listen.port, 8080);
        assert_string_equal(config->http.public_url, "http://localhost:8080");
        assert_int_equal(config->http.join_wait_ms, 3000);
        assert_int_equal(config->http.max_body, 16384);
        assert_int_equal(config->http.max_connections, 19000);
        assert_int_equal(config->http.idle_timeout_ms, 60000);
        assert_string_equal(config->admin.expirer.host, "127.0.0.1");
        assert_int_equal(config->admin.worker.port, 8081);
        assert_int_equal(config->admin.expirer.port, 8084);
        assert_int_equal(config->worker.processes, 2);
        assert_int_equal(config->worker.max_pending, 100000);
        assert_int_equal(config->admitter.batch, 1000);
        assert_int_equal(config->expirer.batch, 1000);
        assert_int_equal(config->retention.events_entries, 20000);
        assert_int_equal(config->log.level, TL_LOG_INFO);
        assert_int_equal(config->log.format, TL_LOG_LOGFMT);
        assert_string_equal(config->secrets.ticket_keys, "secrets/ticket.keys");
        assert_string_equal(config->secrets.admin_token, "secrets/admin.token");
        assert_int_equal(config->n_queues, 0);
        tl_config_free(&config);
        assert_null(config);
    }
}

static void every_kind_of_process_setting_is_read(void **state)
{
    (void)state;
    const struct tl_config *config = parse("redis:\n"
                                           "  url: redis://u:p@h:1/2\n"
                                           "  key_prefix: 'shop:'\n"
                                           "  timeout: 250ms\n"
                                           "http:\n"
                                           "  listen: \"[::1]:0\"\n"
                                           "  public_url: https://wait.example/line\n"
                                           "  max_body: 64KiB\n"
                                           "admin: {worker: '', dispatcher: , admitter: ~,\n"
                                           "        expirer: localhost:9000}\n"
                                           "worker: {processes: \"7\"}\n"
                                           "log:\n"
                                           "  level: debug\n"
                                           "  format: json\n");
    assert_string_equal(config->redis.url, "redis://u:p@h:1/2");
    assert_string_equal(config->redis.key_prefix, "shop:");
    assert_int_equal(config->redis.timeout_ms, 250);
    assert_string_equal(config->http.listen.host, "::1");
    assert_int_equal(config->http.listen.port, 0);
    assert_string_equal(config->http.public_url, "https://wait.example/line");
    assert_int_equal(config->http.max_body, 65536);
    assert_string_equal(config->admin.worker.host, "");
    assert_int_equal(config->admin.worker.port, -1);
    assert_int_equal(config->admin.dispatcher.port, -1);
    assert_int_equal(config->admin.admitter.port, -1);
    assert_string_equal(config->admin.expirer.host, "localhost");
    assert_int_equal(config->admin.expirer.port, 9000);
    assert_int_equal(config->worker.processes, 7);
    assert_int_equal(config->log.level, TL_LOG_DEBUG);
    assert_int_equal(config->log.format, TL_LOG_JSON);
    tl_config_free(&config);
}

static void queues_are_read_in_their_order(void **state)
{
    (void)state;
    const struct tl_config *config = parse("queues:\n"
                                           "  concert-2026:\n"
                                           "    default_lane: gold\n" /* before its lanes */
                                           "    policy: counter\n"
                                           "    capacity: 10000000\n"
                                           "    rate: { admit: 5, every: 1s }\n"
                                           "    session_ttl: 100ms\n"
                                           "    session_sliding: true\n"
                                           "    session_max: 100ms\n"
                                           "    claim_ttl: 7d\n"
                                           "    waiting_ttl: 1s\n"
                                           "    lanes: [gold, silver, lead]\n"
                                           "    opens_at: 2026-12-01T20:00:00+09:00\n"
                                           "    join: open\n"
                                           "    on_store_error: open\n"
                                           "    mode: paused\n"
                                           "    target_url: https://shop.example/checkout?a=b#c\n"
                                           "  b: {lanes: [one, two]}\n"
                                           "  a:\n");
    assert_int_equal(config->n_queues, 3);
    const struct tl_queue_settings *queue = &config->queues[0].settings;
    assert_string_equal(config->queues[0].name, "concert-2026");
    assert_int_equal(queue->policy, TL_POLICY_COUNTER);
    assert_int_equal(queue->capacity, 10000000);
    assert_int_equal(queue->rate.admit, 5);
    assert_int_equal(queue->rate.every_ms, 1000);
    assert_int_equal(queue->session_ttl_ms, 100);
    assert_true(queue->session_sliding);
    assert_int_equal(queue->session_max_ms, 100);
    assert_int_equal(queue->claim_ttl_ms, INT64_C(604800000));
    assert_int_equal(queue->waiting_ttl_ms, 1000);
    assert_int_equal(queue->n_lanes, 3);
    assert_string_equal(queue->lanes[2], "lead");
    assert_int_equal(queue->default_lane, 0);
    assert_int_equal(queue->opens_at_ms, INT64_C(1796122800000));
    assert_int_equal(queue->on_store_error, TL_STORE_ERROR_OPEN);
    assert_int_equal(queue->mode, TL_MODE_PAUSED);
    assert_string_equal(queue->target_url, "https://shop.example/checkout?a=b#c");
    assert_string_equal(config->queues[1].name, "b");
    assert_int_equal(config->queues[1].settings.default_lane, 1); /* the last */
    assert_string_equal(config->queues[2].name, "a");
    assert_int_equal(config->queues[2].settings.capacity, 300);
    tl_config_free(&config);
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    struct tl_error err = {0};
    assert_null(tl_config_load("/nonexistent/tellerline.yaml", &err));
    assert_string_equal(err.text,
                        "cannot open the configuration /nonexistent/tellerline.yaml: No such "
                        "file or directory");
    assert_int_equal(err.kind, TL_ERR_SYSTEM);
    assert_null(tl_config_load("/", &err));
    assert_string_equal(err.text, "cannot read the configuration /: Is a directory");
}

static void the_tables_are_sound(void **state)
{
    (void)state;
    size_t n[2];
    const struct tl_setting *tables[2] = {tl_config_table(&n[0]), tl_queue_table(&n[1])};
    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < n[t]; i++) {
            const struct tl_setting *row = &tables[t][i];
            char name[TL_SETTING_PATH_MAX];
            char other[TL_SETTING_PATH_MAX];
            assert_true(strlen(row->path) + strlen("TELLERLINE_") < TL_SETTING_PATH_MAX);
            assert_non_null(row->help);
            assert_true(row->path != NULL || t == 0);
            tl_setting_env_name(row, name);
            for (size_t j = 0; j < i; j++) {
                tl_setting_env_name(&tables[t][j], other);
                assert_string_not_equal(name, other);
            }
        }
    }
}

static void assert_same_settings(const struct tl_setting *rows, size_t n, const void *a,
                                 const void *b)
{
    for (size_t i = 0; i < n; i++) {
        char value_a[TL_QUEUE_VALUE_MAX];
        char value_b[TL_QUEUE_VALUE_MAX];
        tl_setting_get(&rows[i], a, TL_FORM_STORE, value_a, sizeof(value_a));
        tl_setting_get(&rows[i], b, TL_FORM_STORE, value_b, sizeof(value_b));
        if (strcmp(value_a, value_b) != 0)
            fail_msg("%s is \"%s\", its default is \"%s\"", rows[i].path, value_a, value_b);
    }
}

static char *read_whole_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 256 * 1024);
    assert_non_null(text);
    if (file == NULL)
        return text;
    assert_true(fread(text, 1, 256 * 1024 - 1, file) < 256 * 1024 - 1);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void the_reference_is_up_to_date_and_holds_every_default(void **state)
{
    (void)state;
    size_t n, length;
    char *fresh = NULL, *text = read_whole_file("conf/reference.yaml");
    FILE *out = open_memstream(&fresh, &length);
    assert_non_null(out);
    tl_config_reference(out);
    assert_int_equal(fclose(out), 0);
    if (strcmp(text, fresh) != 0)
        fail_msg("conf/reference.yaml is stale: put into it what `tellerline config-doc` prints "
                 "after the tables");
    const struct tl_config *config = parse(text);
    const struct tl_config *defaults = parse("queues: {demo: {page: {}}}");
    assert_int_equal(config->n_queues, 1);
    assert_string_equal(config->queues[0].name, "demo");
    const struct tl_setting *rows = tl_config_table(&n);
    assert_same_settings(rows, n, config, defaults);
    rows = tl_queue_table(&n);
    assert_same_settings(rows, n, &config->queues[0].settings, &defaults->queues[0].settings);
    for (size_t i = 0; i < n; i++)
        assert_true(config->queues[0].places[i].line > 0);
    rows = tl_probe_table(&n);
    assert_same_settings(rows, n, &config->queues[0], &defaults->queues[0]);
    rows = tl_page_table(&n);
    assert_same_settings(rows, n, config->queues[0].page, defaults->queues[0].page);
    tl_config_free(&config);
    tl_config_free(&defaults);
    free(fresh);
    free(text);
}

static void the_shipped_file_is_short_and_valid(void **state)
{
    (void)state;
    char *text = read_whole_file("conf/tellerline.yaml");
    const struct tl_config *config = parse(text);
    size_t lines = 0;
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    assert_true(lines <= 30);
    assert_int_equal(config->n_queues, 1);
    tl_config_free(&config);
    free(text);
}

static void shares_and_decimals_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *written;
        uint64_t percent;
    } shares[] = {{"80%", 80}, {"0.8", 80}, {"1%", 1}, {"0.01", 1}, {"0.29", 29}, {"1.0", 100}};
    char yaml[128], shown[TL_QUEUE_VALUE_MAX];
    for (size_t i = 0; i < COUNT(shares); i++) {
        snprintf(yaml, sizeof(yaml), "queues: {a: {adaptive: {load_max: %s}}}", shares[i].written);
        const struct tl_config *config = parse(yaml);
        assert_int_equal(config->queues[0].settings.adaptive.load_max, shares[i].percent);
        size_t n;
        const struct tl_setting *row = tl_queue_table(&n);
        while (strcmp(row->path, "adaptive.load_max") != 0)
            row++;
        tl_setting_get(row, &config->queues[0].settings, TL_FORM_FILE, shown, sizeof(shown));
        snprintf(yaml, sizeof(yaml), "%u%%", (unsigned)shares[i].percent);
        assert_string_equal(shown, yaml);
        tl_setting_get(row, &config->queues[0].settings, TL_FORM_STORE, shown, sizeof(shown));
        yaml[strlen(yaml) - 1] = '\0'; /* the store has the bare number */
        assert_string_equal(shown, yaml);
        tl_config_free(&config);
    }
    const struct tl_config *config = parse("queues: {a: {reopen: {margin: 0}}}");
    assert_int_equal(config->queues[0].settings.reopen.margin, 0);
    tl_config_free(&config);
    config = parse("challenge_service: {provider: recaptcha, min_score: 0.55}");
    assert_true(config->challenge_service.min_score > 0.5499 &&
                config->challenge_service.min_score < 0.5501);
    tl_config_free(&config);
}

static void texts_are_read_by_language(void **state)
{
    (void)state;
    const char *found;
    const struct tl_config *config =
        parse("brand: {text: Welcome}\n"
              "queues:\n"
              "  a:\n"
              "    closed_text: {ko: 닫힘, en: Closed, pt-BR: Fechado}\n"
              "    sold_out_text: Sold out\n"
              "    page: {title: {de: Konzert}, texts.before: \"a\\nb\"}\n");
    const struct tl_queue_settings *a = &config->queues[0].settings;
    assert_string_equal(tl_texts_pick(config->brand.text, "ko", &found), "Welcome");
    assert_null(found);
    assert_string_equal(tl_texts_pick(a->closed_text, "ko", &found), "닫힘");
    assert_string_equal(found, "ko");
    assert_string_equal(tl_texts_pick(a->closed_text, "pt-br", &found), "Fechado");
    assert_string_equal(tl_texts_pick(a->closed_text, "en-GB", NULL), "Closed");
    assert_string_equal(tl_texts_pick(a->closed_text, "fr", &found), "Closed");
    assert_string_equal(found, "en");
    assert_string_equal(tl_texts_pick(a->sold_out_text, "fr", NULL), "Sold out");
    assert_string_equal(tl_texts_pick(config->queues[0].page->title, "fr", &found), "Konzert");
    assert_string_equal(found, "de");
    assert_string_equal(tl_texts_pick(config->queues[0].page->texts.before, "fr", NULL), "a\nb");
    assert_string_equal(tl_texts_pick(config->queues[0].page->place, "fr", &found), "");
    assert_null(found);
    tl_config_free(&config);
}

static void texts_are_set_one_by_one_and_kept_as_in_the_store(void **state)
{
    (void)state;
    char texts[64] = "", value[80], again[64];
    assert_true(tl_texts_put(texts, sizeof(texts), "*", "All", 3));
    tl_texts_write(texts, value, sizeof(value));
    assert_string_equal(value, "All");
    assert_true(tl_texts_put(texts, sizeof(texts), "zh-Hant", "一", 3));
    assert_true(tl_texts_put(texts, sizeof(texts), "de", "Eins", 4));
    assert_true(tl_texts_put(texts, sizeof(texts), "zh-hant", "二", 3)); /* in place of the first */
    tl_texts_write(texts, value, sizeof(value));
    assert_string_equal(value, "\x1e[*] All\x1e[de] Eins\x1e[zh-hant] 二");
    assert_true(tl_texts_read(value, again, sizeof(again)));
    char same[80];
    tl_texts_write(again, same, sizeof(same));
    assert_string_equal(value, same);
    assert_string_equal(tl_texts_pick(texts, "fr", NULL), "All");
    assert_true(tl_texts_put(texts, sizeof(texts), "*", "", 0));
    assert_string_equal(tl_texts_pick(texts, "fr", NULL), "Eins");     /* the first */
    assert_false(tl_texts_put(texts, sizeof(texts), "en", value, 60)); /* does not fit */
    assert_string_equal(tl_texts_pick(texts, "en", NULL), "Eins");
    static const char *const wrong[] = {"\x1e[en]", "\x1e[en] ", "\x1e[english] x", "\x1e",
                                        "\x1e[en x"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(tl_texts_read(wrong[i], again, sizeof(again)));
}

/* Every mistake at once, each with its place. */
static void every_mistake_is_told(void **state)
{
    (void)state;
    static const char yaml[] = "http:\n"
                               "  max_body: 2MiB\n"
                               "  lisen: 0.0.0.0:1\n"
                               "queues:\n"
                               "  a: {capacity: many, session_ttl: 5}\n"
                               "  A: {}\n"
                               "  b: {policy: rate}\n"
                               "webhooks: [{name: x}, {nme: y}]\n";
    static const char *const expected[] = {
        "/settings.yaml:2:13: http.max_body: \"2MiB\" is out of bounds (256B to 1MiB)",
        "/settings.yaml:3:3: http: unknown setting \"lisen\"; did you mean \"listen\"?",
        "/settings.yaml:5:17: queues.a.capacity: \"many\" is not a whole number (0 to 10000000)",
        "/settings.yaml:5:36: queues.a.session_ttl: \"5\" is not a duration",
        "/settings.yaml:6:3: \"A\" is not a queue's name",
        "/settings.yaml:7:3: queues.b: policy \"rate\" needs a rate",
        "/settings.yaml:8:12: webhooks[0]: a webhook needs name, url and secret_file",
        "/settings.yaml:8:24: webhooks[1]: unknown setting \"nme\"; did you mean \"name\"?",
        "environment: TELLERLINE_LOG_LEVEL: \"loud\" is not one of",
        "environment: unknown variable \"TELLERLINE_HTTP_LISEN\"",
    };
    char folder[] = "/tmp/tl_mistakes_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/settings.yaml", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(yaml, file) >= 0 && fclose(file) == 0);
    assert_int_equal(setenv("TELLERLINE_LOG_LEVEL", "loud", 1), 0);
    assert_int_equal(setenv("TELLERLINE_HTTP_LISEN", "a", 1), 0);
    struct tl_mistakes mistakes = {0};
    assert_null(tl_config_load_all(path, &mistakes));
    for (size_t i = 0; i < mistakes.n; i++) {
        bool found = false;
        for (size_t j = 0; j < COUNT(expected); j++)
            found = found || strstr(mistakes.list[i].err.text, expected[j]) != NULL;
        if (!found)
            fail_msg("%s", mistakes.list[i].err.text);
    }
    assert_int_equal(mistakes.n, COUNT(expected));
    unsetenv("TELLERLINE_LOG_LEVEL");
    unsetenv("TELLERLINE_HTTP_LISEN");
    assert_int_equal(remove(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void a_probe_is_of_the_file_only(void **state)
{
    (void)state;
    struct tl_error err = {0};
    struct tl_queue_settings settings;
    const struct tl_config *config = parse("queues:\n"
                                           "  a:\n"
                                           "    probe: {url: 'http://site:9100/metrics', format: "
                                           "prometheus, value: busy, full: 0.9, every: 500ms}\n"
                                           "  b:\n");
    const struct tl_probe_config *probe = &config->queues[0].probe;
    assert_string_equal(probe->url, "http://site:9100/metrics");
    assert_int_equal(probe->format, TL_PROBE_PROMETHEUS);
    assert_string_equal(probe->value, "busy");
    assert_true(probe->full > 0.8999 && probe->full < 0.9001);
    assert_int_equal(probe->every_ms, 500);
    assert_int_equal(probe->timeout_ms, 1000);
    assert_string_equal(config->queues[1].probe.url, "");
    tl_config_free(&config);

    tl_queue_settings_defaults(&settings);
    assert_false(
        tl_queue_settings_set(&settings, "probe_url", "http://other/", TL_FORM_FILE, &err));
    assert_false(
        tl_queue_settings_set(&settings, "probe.url", "http://other/", TL_FORM_FILE, &err));
    static const char *const wrong[] = {
        "queues: {a: {probe: {url: 'http://site/'}}}", /* what to read? */
        "queues: {a: {probe: {url: 'ftp://site/', value: x}}}",
        "queues: {a: {probe: {full: 0}}}",
        "queues: {a: {probe: {full: 1e5}}}",
        "queues: {a: {probe: {full: '.5'}}}",
        "queues: {a: {probe: {nothing: 1}}}",
        "queues: {a: {capacity: {max: 5, min: 6}}}",
        "queues: {a: {capacity: {max: many}}}",
        "queues: {a: {capacity: {max: [6]}}}",
        "queues: {a: {capacity: {most: 6}}}",
        "queues: {a: {capacity: [5, 6]}}",
        "queues: {a: {capacity: auto}}",
    };
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (tl_config_parse("text", wrong[i], strlen(wrong[i]), &err) != NULL)
            fail_msg("%s was taken", wrong[i]);
}

static void a_capacity_is_fixed_or_has_bounds(void **state)
{
    static const struct {
        const char *text;
        uint64_t most, least;
    } cases[] = {
        {"queues: {a: {capacity: {min: 60, max: 600}}}", 600, 60},
        {"queues: {a: {capacity: {max: 600, min: 60}}}", 600, 60},
        {"queues: {a: {capacity: {min: 60}}}", 300, 60}, /* the default */
        {"queues: {a: {capacity: 600}}", 600, 0},
    };
    (void)state;
    static const char *const dotted[] = {"queues: {a: {capacity: 20, capacity.min: 3}}",
                                         "queues: {a: {capacity.min: 3, capacity: 20}}",
                                         "queues: {a: {capacity.max: 20, capacity.min: 3}}"};
    for (size_t i = 0; i < COUNT(dotted); i++) {
        const struct tl_config *both = parse(dotted[i]);
        assert_int_equal(both->queues[0].settings.capacity, 20);
        assert_int_equal(both->queues[0].settings.capacity_min, 3);
        tl_config_free(&both);
    }
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct tl_config *config = parse(cases[i].text);
        assert_int_equal(config->queues[0].settings.capacity, cases[i].most);
        assert_int_equal(config->queues[0].settings.capacity_min, cases[i].least);
        tl_config_free(&config);
    }
    struct tl_error err = {0};
    static const char wrong[] = "queues: {a: {capacity:\n {min: 1, most: 2}}}";
    assert_null(tl_config_parse("text", wrong, strlen(wrong), &err));
    assert_string_equal(err.text, "text:2:11: queues.a.capacity: unknown setting \"most\"");
}

static void the_examples_are_valid(void **state)
{
    (void)state;
    static const char *const examples[] = {"conf/examples/ticket-shop.yaml",
                                           "conf/examples/flash-sale.yaml",
                                           "conf/examples/open-day.yaml"};
    for (size_t i = 0; i < COUNT(examples); i++) {
        char *text = read_whole_file(examples[i]);
        const struct tl_config *config = parse(text);
        assert_true(config->n_queues > 0);
        tl_config_free(&config);
        free(text);
    }
}

/* The tables, between their comments, in the document's text. */
static void the_documentation_is_up_to_date(void **state)
{
    (void)state;
    static const char path[] = "docs/operators/configuration.md";
    static const char end[] = "<!-- end -->\n";
    char *fresh = NULL;
    size_t length;
    FILE *out = open_memstream(&fresh, &length);
    assert_non_null(out);
    tl_config_document(out);
    assert_int_equal(fclose(out), 0);
    char *stored = read_whole_file(path);
    for (char *table = fresh; *table != '\0';) {
        char *stop = strstr(table, end) + strlen(end);
        char block[64 * 1024];
        assert_true(snprintf(block, sizeof(block), "%.*s", (int)(stop - table), table) > 0);
        if (strstr(stored, block) == NULL)
            fail_msg("%s is stale: put into it what `tellerline config-doc` prints", path);
        table = stop;
    }
    char limits[256];
    snprintf(limits, sizeof(limits), "nested at most %d deep, at most %d entries",
             TL_YAML_DEPTH_MAX, TL_YAML_ENTRIES_MAX);
    assert_non_null(strstr(stored, limits));
    snprintf(limits, sizeof(limits), "at most %d queues)", TL_YAML_ENTRIES_MAX);
    assert_non_null(strstr(stored, limits));
    snprintf(limits, sizeof(limits), "under `webhooks:`, of at most %d,", TL_WEBHOOKS_MAX);
    assert_non_null(strstr(stored, limits));
    free(stored);
    free(fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_gives_the_defaults),
        cmocka_unit_test(every_kind_of_process_setting_is_read),
        cmocka_unit_test(queues_are_read_in_their_order),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
        cmocka_unit_test(the_tables_are_sound),
        cmocka_unit_test(the_reference_is_up_to_date_and_holds_every_default),
        cmocka_unit_test(the_shipped_file_is_short_and_valid),
        cmocka_unit_test(shares_and_decimals_are_read),
        cmocka_unit_test(texts_are_read_by_language),
        cmocka_unit_test(texts_are_set_one_by_one_and_kept_as_in_the_store),
        cmocka_unit_test(every_mistake_is_told),
        cmocka_unit_test(a_probe_is_of_the_file_only),
        cmocka_unit_test(a_capacity_is_fixed_or_has_bounds),
        cmocka_unit_test(the_examples_are_valid),
        cmocka_unit_test(the_documentation_is_up_to_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

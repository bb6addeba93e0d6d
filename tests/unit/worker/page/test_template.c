/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/page/template.h"

static const char *const names[] = {"name", "empty", "other", ">source"};

enum { N_NAMES = sizeof(names) / sizeof(names[0]) };

/* Lists: "name" has three items, whose numbers are the value of "other", "empty" none. */
static bool item(void *context, size_t name, size_t i)
{
    char *other = context;
    other[0] = (char)('0' + i);
    return name == 0 && i < 3;
}

static void renders(const char *template, const char *name, const char *expected)
{
    struct tl_error err;
    struct tl_text out = {0};
    struct tl_template *parsed =
        tl_template_parse("t", template, strlen(template), names, N_NAMES, &err);
    if (parsed == NULL)
        fail_msg("%s", err.text);
    char other[] = "x";
    const char *const values[N_NAMES] = {name, NULL, other, "x"};
    tl_template_render(parsed, values, item, other, &out);
    assert_false(out.failed);
    assert_string_equal(out.data == NULL ? "" : out.data, expected);
    tl_text_free(&out);
    tl_template_free(&parsed);
    assert_null(parsed);
}

static void is_refused(const char *template, const char *message)
{
    struct tl_error err = {.kind = TL_OK};
    assert_null(tl_template_parse("t", template, strlen(template), names, N_NAMES, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    assert_string_equal(err.text, message);
}

static void test_values_are_escaped(void **state)
{
    (void)state;
    renders("", "", "");
    renders("<p>{{name}}</p>", "plain", "<p>plain</p>");
    renders("<p>{{name}}</p>", "<b>&\"'", "<p>&lt;b&gt;&amp;&quot;&#39;</p>");
    renders("<a title=\"{{name}}\">", "\" onload=\"x", "<a title=\"&quot; onload=&quot;x\">");
    renders("<a title='{{name}}'>", "' onload='x", "<a title='&#39; onload=&#39;x'>");
    renders("{{name}}{{name}}", "한국어", "한국어한국어");
    renders("a < b, c > {{name}} } {", "%s%n", "a < b, c > %s%n } {");
}

static void test_sections(void **state)
{
    (void)state;
    renders("a{{#name}}b{{name}}{{/name}}c", "1", "ab1c");
    renders("a{{#name}}b{{name}}{{/name}}c", "", "ac");
    renders("a{{#empty}}b{{#name}}c{{/name}}{{/empty}}d", "1", "ad");
    renders("{{#name}}{{#other}}in{{#empty}}out{{/empty}}{{/other}}{{/name}}", "1", "in");
    renders("<p{{#name}} hidden{{/name}}>", "1", "<p hidden>");
}

static void test_sections_of_what_is_empty(void **state)
{
    (void)state;
    renders("a{{^name}}b{{/name}}c", "1", "ac");
    renders("a{{^name}}b{{name}}{{/name}}c", "", "abc");
    renders("a{{^empty}}b{{#name}}c{{/name}}{{/empty}}d", "1", "abcd");
    renders("{{^name}}{{^empty}}in{{/empty}}{{/name}}{{#name}}out{{/name}}", "", "in");
    renders("<p{{^name}} hidden{{/name}}>", "", "<p hidden>");
    renders("{{*name}}{{^other}}-{{/other}}{{^empty}}+{{/empty}}{{/name}}.", "", "+++.");
    is_refused("{{^nmae}}{{/nmae}}", "t:1:1: there is no such name: \"nmae\"");
    is_refused("{{^name}}", "t:1:10: a section is not closed");
    is_refused("<p{{^name}}>{{/name}}",
               "t:1:13: the section ends in another part of a tag than it began in: \"name\"");
}

static void test_what_is_refused(void **state)
{
    (void)state;
    is_refused("a\nbc {{nmae}}", "t:2:4: there is no such name: \"nmae\"");
    is_refused("{{}}", "t:1:1: there is no such name: \"\"");
    is_refused("{{ name }}", "t:1:1: there is no such name: \" name \"");
    is_refused("{{na\x01\xff}}", "t:1:1: there is no such name: \"na??\"");
    is_refused("\n\n  {{name", "t:3:3: {{ without }}");
    is_refused("{{#name}}", "t:1:10: a section is not closed");
    is_refused("{{/name}}", "t:1:1: no section is open, but this closes \"name\"");
    is_refused("{{#name}}{{#other}}{{/name}}",
               "t:1:20: another section must be closed before \"name\"");
    is_refused("<p{{#name}}>{{/name}}",
               "t:1:13: the section ends in another part of a tag than it began in: \"name\"");
}

static void test_values_only_where_escaping_helps(void **state)
{
    (void)state;
    static const char *const places[] = {
        "<p {{name}}>",
        "<{{name}}",
        "<p class={{name}}>",
        "<script>{{name}}</script>",
        "<STYLE>{{name}}</STYLE>",
        "<!-- {{name}} -->",
        "</{{name}}",
    };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct tl_error err = {.kind = TL_OK};
        struct tl_template *template =
            tl_template_parse("t", places[i], strlen(places[i]), names, N_NAMES, &err);
        if (template != NULL)
            fail_msg("taken: %s", places[i]);
        assert_non_null(strstr(err.text, "only text and quoted attributes"));
    }
    renders("<script src=\"{{name}}\"></script>{{name}}<!-- > -->{{name}}", "1",
            "<script src=\"1\"></script>1<!-- > -->1");
}

/* A source is what the program wrote: it stands unescaped, and only where escaping would break it.
 */
static void test_sources_only_in_scripts_and_styles(void **state)
{
    (void)state;
    renders("<script>{{>source}}</script>{{name}}", "<", "<script>x</script>&lt;");
    renders("<style>a{{>source}}b</style>", "", "<style>axb</style>");
    renders("{{#>source}}<style>{{>source}}</style>{{/>source}}{{^>source}}none{{/>source}}", "",
            "<style>x</style>");
    static const char *const places[] = {"{{>source}}", "<p title=\"{{>source}}\">",
                                         "<!--{{>source}}-->", "<script {{>source}}></script>"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct tl_error err = {.kind = TL_OK};
        assert_null(tl_template_parse("t", places[i], strlen(places[i]), names, N_NAMES, &err));
        assert_non_null(strstr(err.text, "only a script or style can hold a source: \"source\""));
    }
    is_refused("<script>{{>name}}</script>", "t:1:9: there is no such name: \"name\"");
    is_refused("{{source}}", "t:1:1: there is no such name: \"source\"");
}

static void test_lists(void **state)
{
    (void)state;
    renders("<ul>{{*name}}<li>{{other}} {{name}}</li>{{/name}}</ul>", "&",
            "<ul><li>0 &amp;</li><li>1 &amp;</li><li>2 &amp;</li></ul>");
    renders("{{*name}}{{#other}}{{other}}{{/other}}{{#empty}}-{{/empty}}{{/name}}.", "", "012.");
    renders("{{*empty}}x{{/empty}}.", "", ".");
    is_refused("{{*name}}{{*other}}{{/other}}{{/name}}",
               "t:1:10: a list cannot stand in a list: \"other\"");
    is_refused("{{*name}}", "t:1:10: a section is not closed");
}

static void test_limits(void **state)
{
    (void)state;
    struct tl_error err = {.kind = TL_OK};
    char deep[1024] = "";
    for (int i = 0; i <= TL_TEMPLATE_DEPTH; i++)
        strcat(deep, "{{#name}}"); /* NOLINT: the buffer is large enough */
    assert_null(tl_template_parse("t", deep, strlen(deep), names, N_NAMES, &err));
    assert_non_null(strstr(err.text, "too many nested sections"));

    assert_null(tl_template_parse("t", "a\0b", 3, names, N_NAMES, &err));
    assert_string_equal(err.text, "t:1:2: a zero byte");

    char *large = calloc(1, TL_TEMPLATE_MAX + 1);
    assert_non_null(large);
    memset(large, 'a', TL_TEMPLATE_MAX + 1);
    assert_null(tl_template_parse("t", large, TL_TEMPLATE_MAX + 1, names, N_NAMES, &err));
    assert_string_equal(err.text, "t: 65537 bytes, at most 65536");
    struct tl_template *template =
        tl_template_parse("t", large, TL_TEMPLATE_MAX, names, N_NAMES, &err);
    assert_non_null(template);
    tl_template_free(&template);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_escaped),
        cmocka_unit_test(test_sections),
        cmocka_unit_test(test_sections_of_what_is_empty),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_values_only_where_escaping_helps),
        cmocka_unit_test(test_sources_only_in_scripts_and_styles),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

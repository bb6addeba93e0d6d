/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths are files of the dashboard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/admin/answer.h"

static const struct tl_asset *find(const char *path)
{
    return tl_admin_file_find(path, strlen(path));
}

static void the_page_and_its_files(void **state)
{
    (void)state;
    assert_string_equal(find("/")->type, "text/html; charset=utf-8");
    assert_ptr_equal(find("/"), find("/assets/index.html"));
    assert_string_equal(find("/assets/dashboard.js")->type, "text/javascript; charset=utf-8");
    assert_string_equal(find("/assets/dashboard.css")->type, "text/css; charset=utf-8");
    assert_true(find("/")->length > find("/")->gzip_length);
}

static void nothing_else(void **state)
{
    static const char *const paths[] = {"",
                                        "/index.html",
                                        "/assets",
                                        "/assets/",
                                        "/assets/../x",
                                        "/assets/dashboard.jsx",
                                        "/assets/dashboard.j",
                                        "//",
                                        "/livez"};
    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_null(find(paths[i]));
}

/* The policy of the page allows no inline script and no inline style. */
static void nothing_is_inline(void **state)
{
    const struct tl_asset *page = find("/");
    static const char *const forbidden[] = {"<style", "style=", " onclick", " onsubmit",
                                            "javascript:"};
    (void)state;
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
        assert_null(memmem(page->bytes, page->length, forbidden[i], strlen(forbidden[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_and_its_files),
        cmocka_unit_test(nothing_else),
        cmocka_unit_test(nothing_is_inline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

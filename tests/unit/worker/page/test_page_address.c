/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/page/page.h"

static void test_address(void **state)
{
    (void)state;
    struct tl_text out = {0};
    struct tl_view view = {
        .page = TL_PAGE_LEFT, .queue = "q", .state = {.status = TL_LINE_WAITING, .ahead = 4}};
    tl_page_address(&view, "", NULL, &out);
    assert_string_equal(out.data, "/q/q");
    view.page = TL_PAGE_WAITING;
    view.ticket = "a b";
    view.return_url = "https://x.example/?a=b";
    view.invite = "i.j";
    tl_page_address(&view, "/leave", "ko", &out);
    assert_string_equal(out.data, "/q/q/q/q/leave?lang=ko&ticket=a%20b&invite=i.j&from=5&return="
                                  "https%3A%2F%2Fx.example%2F%3Fa%3Db");
    tl_text_free(&out);
    view = (struct tl_view){.page = TL_PAGE_WAITING,
                            .queue = "q",
                            .state = {.status = TL_LINE_WAITING, .ahead = 4},
                            .place_name = "Q5T9-4XDR",
                            .return_url = "https://x.example/?a=b"};
    tl_page_address(&view, "", NULL, &out);
    tl_page_address(&view, "/transfer", NULL, &out);
    assert_string_equal(out.data, "/q/q?from=5&return=https%3A%2F%2Fx.example%2F%3Fa%3Db"
                                  "/q/q/transfer?from=5&place=Q5T9-4XDR&return="
                                  "https%3A%2F%2Fx.example%2F%3Fa%3Db");
    tl_text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_address)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#define ZLIB_CONST
#include <zlib.h>

#include "worker/page/page.h"

#define BUDGET 24576 /* bytes on the way, with everything that a page may have */

static struct tl_text inflated(const unsigned char *bytes, size_t length)
{
    static char plain[1 << 18];
    z_stream stream = {.next_in = bytes,
                       .avail_in = (uInt)length,
                       .next_out = (Bytef *)plain,
                       .avail_out = sizeof(plain)};
    assert_int_equal(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END); /* its check sum is right, too */
    assert_int_equal(stream.avail_in, 0);
    struct tl_text text = {.data = plain, .length = stream.total_out};
    assert_int_equal(inflateEnd(&stream), Z_OK);
    return text;
}

/* Returns how long it is on the way. */
static size_t comes_through(const struct tl_view *view, const struct tl_brand *brand,
                            const struct tl_catalogue *language)
{
    struct tl_text page = {0};
    unsigned char *bytes;
    size_t length;
    tl_page_render(view, brand, language, &page);
    assert_false(page.failed);
    assert_true(tl_page_gzip(&page, brand->sources, &bytes, &length));
    struct tl_text text = inflated(bytes, length);
    assert_int_equal(text.length, page.length);
    assert_memory_equal(text.data, page.data, page.length);
    free(bytes);
    tl_text_free(&page);
    return length;
}

static void test_comes_through_and_is_light(void **state)
{
    (void)state;
    static char notice[60000];
    struct tl_view view = {.page = TL_PAGE_CHALLENGE, .queue = "concert"};
    struct tl_languages *languages = tl_languages_new(NULL, NULL);
    assert_non_null(languages);
    const struct tl_catalogue *korean = tl_languages_find(languages, "ko");
    struct tl_brand *brand = tl_brand_load(
        &(struct tl_brand_settings){.name = "Hall", .accent_light = "#8b1a4a"}, languages, NULL);
    assert_non_null(brand);
    view.puzzle = "a-puzzle";
    view.wait = "a-wait";
    for (size_t i = 0; i < languages->n; i++) {
        const struct tl_catalogue *language = languages->all[i];
        size_t length = comes_through(&view, brand, language);
        if (length >= BUDGET)
            fail_msg("%s: %zu bytes", language->code, length);
    }
    for (size_t i = 0; i < sizeof(notice) - 1; i++) /* nothing to compress */
        notice[i] = (char)('0' + (i * i * 7919 + i / 13) % 75);
    view.notice = notice;
    (void)comes_through(&view, brand, korean);
    tl_brand_free(&brand);
    tl_languages_free(&languages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_comes_through_and_is_light)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* QR codes as paths: drawn again, they are the code of the library, with a light margin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <qrencode.h>

#include "worker/page/page_address.h"

enum { SIDE_MAX = 177 + 2 * TL_QR_QUIET };

/* Reads the character and the whole number behind it. */
static int step(const char **at, char character)
{
    char *end;
    assert_int_equal(**at, character);
    long number = strtol(*at + 1, &end, 10);
    assert_true(end > *at + 1);
    *at = end;
    return (int)number;
}

/* Draws "Mx y.5" and "mdx dyhn" steps. */
static void draw(const char *path, unsigned char dark[SIDE_MAX][SIDE_MAX])
{
    memset(dark, 0, sizeof(unsigned char[SIDE_MAX][SIDE_MAX]));
    int x = step(&path, 'M');
    int y = step(&path, ' ');
    assert_int_equal(step(&path, '.'), 5);
    while (*path != '\0') {
        x += step(&path, 'm');
        y += step(&path, ' ');
        for (int n = step(&path, 'h'); n > 0; n--) {
            assert_in_range(x, 0, SIDE_MAX - 1);
            assert_in_range(y, 0, SIDE_MAX - 1);
            dark[y][x++] = 1;
        }
    }
}

static void the_path_is_the_code(void **state)
{
    (void)state;
    static unsigned char dark[SIDE_MAX][SIDE_MAX];
    char text[TL_QR_TEXT_MAX + 1];
    for (size_t length = 1; length <= TL_QR_TEXT_MAX; length += 60) {
        struct tl_qr qr;
        memset(text, 'x', length);
        text[length] = '\0';
        tl_qr_make(text, &qr);
        assert_false(qr.path.failed);
        QRcode *code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M);
        assert_non_null(code);
        int side = code->width + 2 * TL_QR_QUIET;
        assert_int_equal(qr.size, side);
        draw(qr.path.data, dark);
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++) {
                int in_x = x - TL_QR_QUIET, in_y = y - TL_QR_QUIET;
                bool inside = in_x >= 0 && in_y >= 0 && in_x < code->width && in_y < code->width;
                int wanted = inside ? code->data[in_y * code->width + in_x] & 1 : 0;
                assert_int_equal(dark[y][x], wanted);
            }
        QRcode_free(code);
        struct tl_text svg = {0};
        tl_qr_svg(&qr, &svg);
        assert_false(svg.failed);
        assert_non_null(strstr(svg.data, qr.path.data));
        tl_text_free(&svg);
        tl_qr_free(&qr);
    }
}

static void a_text_that_is_too_long_has_none(void **state)
{
    (void)state;
    char text[TL_QR_TEXT_MAX + 2];
    struct tl_qr qr;
    struct tl_text svg = {0};
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    tl_qr_make(text, &qr);
    assert_true(qr.path.failed);
    tl_qr_svg(&qr, &svg);
    assert_true(svg.failed);
    tl_qr_free(&qr);
    tl_text_free(&svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_path_is_the_code),
        cmocka_unit_test(a_text_that_is_too_long_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

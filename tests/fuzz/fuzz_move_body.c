/* SPDX-License-Identifier: Apache-2.0 */
/* The body that redeems the code of a hand-over, as JSON and as a form. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/api/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static void expect_device(const struct tl_move_body *body)
{
    expect(strspn(body->device, "0123456789abcdef") == strlen(body->device));
    expect(strlen(body->code) < sizeof(body->code));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    /* A copy of exactly this size, so that reading past its end is noticed. */
    char *text = malloc(length > 0 ? length : 1);
    struct tl_error err = {0};
    struct tl_move_body body;
    expect(text != NULL);
    if (length > 0)
        memcpy(text, bytes, length);
    if (tl_move_body_parse_json(text, length, &body, &err))
        expect(body.code[0] != '\0');
    else
        expect(err.text[0] != '\0');
    expect_device(&body);
    tl_move_body_parse_form(text, length, &body);
    expect_device(&body);
    expect(strpbrk(body.code, " #\r\n\t") == NULL);
    free(text);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON body of a join. Accepted values must be within bounds, and an invite must stand alone.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/names.h"
#include "worker/api/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    /* A copy of exactly this size, so that reading past its end is noticed. */
    char *text = malloc(length > 0 ? length : 1);
    struct tl_error err = {0};
    struct tl_join_body body;
    expect(text != NULL);
    if (length > 0)
        memcpy(text, bytes, length);
    if (!tl_join_body_parse(text, length, &body, &err)) {
        expect(err.text[0] != '\0' && memchr(err.text, '\0', sizeof(err.text)) != NULL);
    } else {
        size_t visitor = strnlen(body.visitor, sizeof(body.visitor));
        expect(visitor == 0 || tl_visitor_valid(body.visitor, visitor));
        expect(strnlen(body.lane, sizeof(body.lane)) < sizeof(body.lane));
        expect(strnlen(body.invite, sizeof(body.invite)) < sizeof(body.invite));
        expect(strnlen(body.token, sizeof(body.token)) < sizeof(body.token));
        expect(body.invite[0] == '\0' || (visitor == 0 && body.lane[0] == '\0'));
    }
    free(text);
    return 0;
}

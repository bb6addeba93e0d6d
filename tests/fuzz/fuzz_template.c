/* SPDX-License-Identifier: Apache-2.0 */
/* The input is a page template. If it is accepted, it is rendered with values that break out of the
 * HTML unless they are escaped. No template may bring them into the page unescaped. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/page/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"a", "name", "empty"};
static const char hostile[] = "\x01<\"'&>";
static const char *const values[] = {hostile, hostile, ""};

static bool item(void *context, size_t name, size_t i)
{
    (void)context;
    return name != 2 && i < 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_error err;
    struct tl_text out = {0};
    struct tl_template *template = tl_template_parse("fuzz", data, size, names, 3, &err);
    if (template == NULL)
        return 0;
    bool may_hold_it = size > 0 && memchr(data, hostile[0], size) != NULL;
    tl_template_render(template, values, item, NULL, &out);
    if (!may_hold_it && out.data != NULL && strstr(out.data, hostile) != NULL)
        abort();
    tl_text_free(&out);
    tl_template_free(&template);
    return 0;
}

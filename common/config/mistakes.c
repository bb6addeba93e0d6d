/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/mistakes.h"
#include "common/base/text.h"

void tl_mistakes_add(struct tl_mistakes *mistakes, const char *setting, const struct tl_error *err)
{
    if (mistakes->n < TL_MISTAKES_MAX) {
        struct tl_mistake *mistake = &mistakes->list[mistakes->n];
        (void)tl_text_copy(mistake->setting, sizeof(mistake->setting), setting);
        mistake->err = *err;
    }
    mistakes->n++;
}

void tl_mistakes_write(const struct tl_mistakes *mistakes, const char *prefix, FILE *out)
{
    for (size_t i = 0; i < mistakes->n && i < TL_MISTAKES_MAX; i++)
        fprintf(out, "%s%s\n", prefix, mistakes->list[i].err.text);
    if (mistakes->n > TL_MISTAKES_MAX)
        fprintf(out, "%sand %zu more mistakes\n", prefix, mistakes->n - TL_MISTAKES_MAX);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ctl/operands.h"

enum tl_operand tl_operand_of(const char *name, size_t length)
{
    static const struct {
        const char *name;
        enum tl_operand operand;
    } rows[] = {
        {"QUEUE", TL_OPERAND_QUEUE},   {"NAME=VALUE", TL_OPERAND_ASSIGNMENT},
        {"FILE", TL_OPERAND_FILE},     {"DIR", TL_OPERAND_FOLDER},
        {"FORMAT", TL_OPERAND_FORMAT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            return rows[i].operand;
    }
    return TL_OPERAND_OTHER;
}

enum tl_operand tl_operand_at(const char *words, int i)
{
    for (;;) {
        words += strspn(words, " []");
        size_t length = strcspn(words, " .]");
        if (length == 0)
            return TL_OPERAND_NONE;
        bool repeats = strncmp(words + length, "...", 3) == 0;
        if (i == 0 || repeats)
            return tl_operand_of(words, length);
        i--;
        words += length + strspn(words + length, ".]");
    }
}

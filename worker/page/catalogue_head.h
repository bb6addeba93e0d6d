/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a catalogue's file, `language:`: which language it is, and how it writes numbers and
 * dates. Private to worker/page. */
#ifndef TL_CATALOGUE_HEAD_H
#define TL_CATALOGUE_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/page/plural.h"

#include "common/config/yaml.h"

enum { TL_CATALOGUE_ALSO_MAX = 8, TL_CATALOGUE_MONTHS = 12 };

struct tl_catalogue_head {
    char code[TL_LANGUAGE_CODE_MAX + 1];
    char name[64];
    char locale[48];
    char direction[4];
    char plurals[TL_LANGUAGE_CODE_MAX + 1]; /* the language with the rule; "": this one */
    char group[8];
    char date[128];
    char also[TL_CATALOGUE_ALSO_MAX][TL_LANGUAGE_CODE_MAX + 1]; /* "": none */
    char months[TL_CATALOGUE_MONTHS][32];                       /* the first "": numbers */
    int64_t group_from, year_add;
};

void tl_catalogue_head_defaults(struct tl_catalogue_head *head);
/* Reads the mapping `language:` of a file; NULL: it has none. On failure the head is half changed.
 */
bool tl_catalogue_head_read(struct tl_catalogue_head *head, const char *label,
                            const struct tl_yaml *language, struct tl_error *err);
/* Copies the code out of `language:`. False where there is no valid one. */
bool tl_catalogue_head_code(const struct tl_yaml *language, char code[TL_LANGUAGE_CODE_MAX + 1]);

/* `label:line:column: "name": what`, of an entry or its value. Both return false. */
bool tl_catalogue_fail_key(struct tl_error *err, const char *label, const struct tl_yaml *entry,
                           const char *what);
bool tl_catalogue_fail(struct tl_error *err, const char *label, const struct tl_yaml *node,
                       const char *what);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's notice of a queue, in each of its languages as text and as the JSON that event
 * streams send. */
#ifndef TL_NOTICE_H
#define TL_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: there was none yet. */
struct tl_notice {
    char *bytes; /* as the store has it; owned */
    size_t length;
    struct tl_notice_told *told; /* for each language; owned */
    size_t n;
    uint64_t version; /* counts the changes */
};

/* Takes a notice of `length` bytes (common/wire/notice_text.h); 0 removes it. False without memory:
 * the former notice stays. */
bool tl_notice_set(struct tl_notice *notice, const char *bytes, size_t length);
void tl_notice_clear(struct tl_notice *notice);

/* What a visitor of this language (a BCP 47 code; NULL: any) is told. Text "": nothing. JSON
 * {"text":...}, or NULL until the first notice. Valid until the next set. */
const char *tl_notice_text(const struct tl_notice *notice, const char *language);
/* Does what they are told depend on the language? */
bool tl_notice_varies(const struct tl_notice *notice);
const char *tl_notice_json(const struct tl_notice *notice, const char *language);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A notice as the calls show and take it: `notice` is what a visitor of another language reads,
 * `notices` the text of each language. */
#ifndef TL_CONTROL_NOTICE_JSON_H
#define TL_CONTROL_NOTICE_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "common/base/error.h"
#include "common/base/text.h"

/* Sets both members; `notices` is null for one text for everyone. False: out of memory. */
bool tl_notice_to_json(json_t *object, const char *notice, size_t length);
/* The notice alone: a text for everyone, or an object with that of each language. NULL: out of
 * memory. */
json_t *tl_notice_value(const char *notice, size_t length);
/* The notice that an object {"en": "...", "ko": "..."} makes, in the order of its members. Sets
 * TL_ERR_INVALID for anything else. */
bool tl_notice_of_json(const json_t *texts, struct tl_text *notice, struct tl_error *err);

#endif

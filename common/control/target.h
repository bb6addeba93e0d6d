/* SPDX-License-Identifier: Apache-2.0 */
/* Path and query of a request. */
#ifndef TL_CONTROL_TARGET_H
#define TL_CONTROL_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

enum {
    TL_TARGET_MAX = 1024, /* bytes of a target that is read */
    TL_TARGET_SEGMENTS = 8,
    TL_TARGET_PARAMETERS = 8,
};

/* A target, split and decoded. Texts point into `bytes`. */
struct tl_target {
    char bytes[TL_TARGET_MAX];
    size_t n_segments;
    const char *segments[TL_TARGET_SEGMENTS];
    bool has_path; /* also when the query is not well formed */
    size_t n_parameters;
    struct {
        const char *name, *value;
    } parameters[TL_TARGET_PARAMETERS];
};

/* False with TL_ERR_INVALID: it is too long, has too many parts, or a part is not well encoded. A
 * decoded zero byte is refused. */
bool tl_target_parse(const char *text, struct tl_target *target, struct tl_error *err);
/* Does the path of the target follow the pattern "/v1/admin/queues/{queue}"? A part in braces
 * stands for any segment that is not empty. */
bool tl_target_matches(const struct tl_target *target, const char *pattern);
/* The segment for the part {name} of the pattern, which the target matches; NULL: it has none. */
const char *tl_target_part(const struct tl_target *target, const char *pattern, const char *name);
/* The value of a parameter of the query; NULL: it is not there. */
const char *tl_target_parameter(const struct tl_target *target, const char *name);

#endif

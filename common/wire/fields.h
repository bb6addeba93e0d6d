/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a payload of msgpack field by field, strictly and in one pass. Used by the decoders of
 * the wire format only. Nothing is allocated and nothing is copied: strings stay where they are.
 * What was not asked for is refused, so neither nesting nor a declared count can ask for more than
 * the bytes at hand.
 */
#ifndef TL_WIRE_FIELDS_H
#define TL_WIRE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/wire/names.h"

#define TL_WIRE_BYTES_MAX (256 * 1024) /* one entry's payload */

struct tl_fields {
    const unsigned char *at, *end;
    struct tl_error *err; /* gets TL_ERR_INVALID when one of these returns false */
};

/* Begins to read a whole payload: an array of n elements, of which the first is this version. */
bool tl_fields_begin(struct tl_fields *fields, const void *bytes, size_t length, uint64_t version,
                     size_t n);
/* No byte is left. */
bool tl_fields_end(const struct tl_fields *fields);

/* Each takes the next value. */
bool tl_fields_uint(struct tl_fields *fields, uint64_t limit, uint64_t *value);
bool tl_fields_string(struct tl_fields *fields, const char **text, size_t *length);
/* The name of a worker, copied with a terminating zero. */
bool tl_fields_worker(struct tl_fields *fields, char name[TL_WORKER_ID_MAX + 1]);
/* The head of an array, whose n elements come next: no more than bytes are left. */
bool tl_fields_array(struct tl_fields *fields, size_t *n);

/* Are the n elements of an array as many as expected? */
bool tl_fields_expect(const struct tl_fields *fields, size_t n, size_t expected);

#endif

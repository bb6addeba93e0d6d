/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the fields of a msgpack array one after the other, strictly. Used by the decoders of the
 * wire format only. Strings stay where they are in the payload; nothing is copied.
 */
#ifndef TL_WIRE_FIELDS_H
#define TL_WIRE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <msgpack.h>

#include "common/base/error.h"

#define TL_WIRE_BYTES_MAX (256 * 1024) /* one entry's payload */
#define TL_WIRE_DEPTH_MAX 8

struct tl_unpacked {
    msgpack_zone zone;
    msgpack_object object;
};

/* Scans (scan.h) and unpacks one value. Freed with tl_unpacked_free if it returned true. */
bool tl_unpack(const void *bytes, size_t length, struct tl_unpacked *unpacked,
               struct tl_error *err);
void tl_unpacked_free(struct tl_unpacked *unpacked);

struct tl_fields {
    const msgpack_object *at, *end;
    struct tl_error *err;
};

/* object must be an array of least to most elements. */
bool tl_fields_open(struct tl_fields *fields, const msgpack_object *object, size_t least,
                    size_t most, struct tl_error *err);
/* Each takes the next field. */
bool tl_fields_uint(struct tl_fields *fields, uint64_t limit, uint64_t *value);
bool tl_fields_string(struct tl_fields *fields, const char **text, size_t *length);
/* A short printable name, copied with a terminating zero. */
bool tl_fields_name(struct tl_fields *fields, char *name, size_t size);
bool tl_fields_array(struct tl_fields *fields, const msgpack_object **array);
/* No field is left. */
bool tl_fields_end(struct tl_fields *fields);
/* The version of the format, one of those known. */
bool tl_fields_version(struct tl_fields *fields, uint64_t oldest, uint64_t newest,
                       uint64_t *version);

#endif

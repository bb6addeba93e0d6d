/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/wire/fields.h"
#include "common/wire/scan.h"

/* First chunk of the zone that holds the decoded arrays; it grows by itself. */
#define ZONE_CHUNK 8192

bool tl_unpack(const void *bytes, size_t length, struct tl_unpacked *unpacked, struct tl_error *err)
{
    if (length > TL_WIRE_BYTES_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "%zu bytes; the limit is %d", length,
                            TL_WIRE_BYTES_MAX);
    if (!tl_wire_scan(bytes, length, TL_WIRE_DEPTH_MAX, err))
        return false;
    if (!msgpack_zone_init(&unpacked->zone, ZONE_CHUNK))
        return tl_error_set(err, TL_ERR_NOMEM, "no memory to decode %zu bytes", length);
    size_t offset = 0;
    msgpack_unpack_return result =
        msgpack_unpack(bytes, length, &offset, &unpacked->zone, &unpacked->object);
    if (result == MSGPACK_UNPACK_SUCCESS)
        return true;
    msgpack_zone_destroy(&unpacked->zone);
    if (result == MSGPACK_UNPACK_NOMEM_ERROR)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory to decode %zu bytes", length);
    return tl_error_set(err, TL_ERR_INVALID, "not a msgpack value");
}

void tl_unpacked_free(struct tl_unpacked *unpacked)
{
    msgpack_zone_destroy(&unpacked->zone);
}

bool tl_fields_open(struct tl_fields *fields, const msgpack_object *object, size_t least,
                    size_t most, struct tl_error *err)
{
    if (object->type != MSGPACK_OBJECT_ARRAY)
        return tl_error_set(err, TL_ERR_INVALID, "expected an array");
    size_t n = object->via.array.size;
    if (n < least || n > most)
        return tl_error_set(err, TL_ERR_INVALID, "an array of %zu fields; expected %zu to %zu", n,
                            least, most);
    *fields = (struct tl_fields){
        .at = object->via.array.ptr, .end = object->via.array.ptr + n, .err = err};
    return true;
}

static const msgpack_object *take(struct tl_fields *fields, msgpack_object_type type,
                                  const char *what)
{
    if (fields->at == fields->end || fields->at->type != type) {
        tl_error_set(fields->err, TL_ERR_INVALID, "expected %s", what);
        return NULL;
    }
    return fields->at++;
}

bool tl_fields_uint(struct tl_fields *fields, uint64_t limit, uint64_t *value)
{
    const msgpack_object *object = take(fields, MSGPACK_OBJECT_POSITIVE_INTEGER, "a whole number");
    if (object == NULL)
        return false;
    *value = object->via.u64;
    if (*value > limit)
        return tl_error_set(fields->err, TL_ERR_INVALID, "the number %llu is above its limit %llu",
                            (unsigned long long)*value, (unsigned long long)limit);
    return true;
}

bool tl_fields_string(struct tl_fields *fields, const char **text, size_t *length)
{
    const msgpack_object *object = take(fields, MSGPACK_OBJECT_STR, "a string");
    if (object == NULL)
        return false;
    *text = object->via.str.ptr;
    *length = object->via.str.size;
    return true;
}

bool tl_fields_name(struct tl_fields *fields, char *name, size_t size)
{
    const char *text;
    size_t length;
    if (!tl_fields_string(fields, &text, &length))
        return false;
    if (length == 0 || length >= size)
        return tl_error_set(fields->err, TL_ERR_INVALID, "a name of %zu bytes; expected 1 to %zu",
                            length, size - 1);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return tl_error_set(fields->err, TL_ERR_INVALID, "a name with unprintable characters");
    memcpy(name, text, length);
    name[length] = '\0';
    return true;
}

bool tl_fields_array(struct tl_fields *fields, const msgpack_object **array)
{
    *array = take(fields, MSGPACK_OBJECT_ARRAY, "an array");
    return *array != NULL;
}

bool tl_fields_end(struct tl_fields *fields)
{
    if (fields->at != fields->end)
        return tl_error_set(fields->err, TL_ERR_INVALID, "more fields than expected");
    return true;
}

bool tl_fields_version(struct tl_fields *fields, uint64_t oldest, uint64_t newest,
                       uint64_t *version)
{
    if (!tl_fields_uint(fields, UINT64_MAX, version))
        return false;
    if (*version < oldest || *version > newest)
        return tl_error_set(
            fields->err, TL_ERR_INVALID,
            "format version %llu, but this program knows only version %llu: upgrade this program",
            (unsigned long long)*version, (unsigned long long)newest);
    return true;
}

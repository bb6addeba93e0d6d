/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/wire/fields.h"
#include "common/wire/place.h"
#include "common/wire/runs.h"

bool tl_fields_runs(struct tl_fields *fields, struct tl_runs *runs)
{
    const msgpack_object *array;
    if (!tl_fields_array(fields, &array))
        return false;
    size_t n = array->via.array.size;
    const msgpack_object *item = array->via.array.ptr;
    if (n % 2 != 0)
        return tl_error_set(fields->err, TL_ERR_INVALID, "runs come in pairs");
    runs->runs = calloc(n > 0 ? n / 2 : 1, sizeof(*runs->runs));
    if (runs->runs == NULL)
        return tl_error_set(fields->err, TL_ERR_NOMEM, "no memory for %zu runs", n / 2);
    uint64_t next = 0; /* the number after the run before */
    for (size_t i = 0; i < n; i += 2) {
        if (item[i].type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
            item[i + 1].type != MSGPACK_OBJECT_POSITIVE_INTEGER)
            return tl_error_set(fields->err, TL_ERR_INVALID, "runs hold whole numbers only");
        uint64_t gap = item[i].via.u64;
        uint64_t count = item[i + 1].via.u64;
        if (gap == 0 || gap > TL_PLACE_MAX - next || count == 0 ||
            count > TL_PLACE_MAX - (next + gap))
            return tl_error_set(fields->err, TL_ERR_INVALID, "a run out of bounds");
        runs->runs[runs->n++] = (struct tl_run){.first = next + gap, .count = count};
        next += gap + count;
    }
    return true;
}

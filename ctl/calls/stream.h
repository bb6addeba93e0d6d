/* SPDX-License-Identifier: Apache-2.0 */
/* An answer that is a stream, on its way to whoever asked for it. */
#ifndef TL_CTL_CALLS_STREAM_H
#define TL_CTL_CALLS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define TL_CTL_TARGET_MAX 1024 /* bytes of a path with its query */

/* Takes the bytes of a stream; false ends it. */
typedef bool tl_ctl_sink(void *context, const char *bytes, size_t length, struct tl_error *err);
/* Called before the first bytes, where it is known how many lines will come. */
typedef void tl_ctl_expected(void *context, uint64_t lines);
struct tl_ctl_stream {
    const char *target;
    tl_ctl_sink *sink;
    tl_ctl_expected *expected;
    void *context; /* of both */
};

#endif

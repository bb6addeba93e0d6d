/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker tells the visitors of a rehearsal: a stream of events with views. The first byte
 * chooses the size of the pieces in which it comes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lab/visitors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

/* What was read, as a sum that depends on the order. */
struct sum {
    uint64_t value;
    size_t events;
};

static void take(void *context, const char *name, const char *data, size_t length)
{
    struct sum *sum = context;
    struct tl_told told;
    char type[32];
    expect(strlen(name) < TL_EVENT_NAME_MAX && length < TL_EVENT_BYTES_MAX);
    bool good = tl_told_read(data, length, &told);
    expect(memchr(told.ticket, '\0', sizeof(told.ticket)) != NULL);
    expect(told.position >= -1 && told.waiting >= -1 && told.active >= -1);
    expect(good || told.status == TL_TOLD_OTHER);
    tl_problem_read(data, length, type, sizeof(type));
    for (const char *at = type; *at != '\0'; at++)
        expect(*at > ' ' && *at <= '~');
    sum->events++;
    for (size_t i = 0; i < length; i++)
        sum->value = sum->value * 31 + (unsigned char)data[i];
}

/* A copy of each piece, so that reading past its end is noticed. */
static bool feed(const uint8_t *bytes, size_t length, size_t piece, struct sum *sum)
{
    struct tl_event_reader reader = {0};
    bool ok = true;
    for (size_t at = 0; ok && at < length; at += piece) {
        size_t n = length - at < piece ? length - at : piece;
        char *copy = malloc(n);
        expect(copy != NULL);
        memcpy(copy, bytes + at, n);
        ok = tl_event_reader_take(&reader, copy, n, take, sum);
        free(copy);
    }
    tl_event_reader_free(&reader);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length < 2)
        return 0;
    struct sum whole = {0};
    struct sum pieces = {0};
    bool ok = feed(bytes + 1, length - 1, length, &whole);
    expect(feed(bytes + 1, length - 1, (size_t)bytes[0] + 1, &pieces) == ok);
    expect(whole.events == pieces.events && whole.value == pieces.value);
    return 0;
}

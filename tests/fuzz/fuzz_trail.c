/* SPDX-License-Identifier: Apache-2.0 */
/* Trails as anybody may give them: checkpoints, keys, bundles, leaves and whole files. What is read
 * lies within the bytes, and a leaf that is read is written again as it was. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/checkpoint.h"
#include "common/archive/leaf.h"
#include "ctl/trail/file.h"
#include "ctl/trail/replay.h"
#include "ctl/trail/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void try_leaf(const char *line, size_t length)
{
    struct tl_leaf leaf;
    struct tl_error err;
    char again[TL_LEAF_MAX + 1];
    if (!tl_leaf_read(line, length, &leaf, &err))
        return;
    require(tl_leaf_write(&leaf, again) == length && memcmp(again, line, length) == 0);
    char who[TL_LEAF_WHO_SIZE];
    (void)tl_leaf_held(&leaf, who);
}

static void try_note(const char *text, size_t size)
{
    struct tl_checkpoint checkpoint;
    struct tl_trail_verifier verifier;
    struct tl_error err;
    char *copy = strndup(text, size);
    require(copy != NULL);
    if (tl_checkpoint_read(text, size, &checkpoint, &err))
        require(strlen(checkpoint.origin) < size && checkpoint.size <= TL_TLOG_SIZE_MAX);
    if (tl_trail_verifier_read(copy, &verifier, &err))
        (void)tl_checkpoint_verify(text, size, &verifier, &err);
    verifier = (struct tl_trail_verifier){.name = "a.example"};
    require(!tl_checkpoint_verify(text, size, &verifier, &err));
    free(copy);
}

static void try_bundle(const unsigned char *bytes, size_t size)
{
    const unsigned char *at = bytes;
    const char *leaf;
    size_t left = size, length;
    while (tl_bundle_next(&at, &left, &leaf, &length)) {
        require((const unsigned char *)leaf >= bytes &&
                (const unsigned char *)leaf + length <= bytes + size);
        try_leaf(leaf, length);
    }
}

struct replay {
    struct tl_replay *replay;
    struct tl_trail_rows *rows;
    uint64_t n;
};

static void take(void *context, const char *line, size_t length)
{
    struct replay *self = context;
    struct tl_leaf leaf;
    struct tl_error err;
    try_leaf(line, length);
    if (tl_leaf_read(line, length, &leaf, &err)) {
        tl_trail_rows_take(self->rows, &leaf);
        tl_replay_take(self->replay, self->n++, &leaf);
    } else {
        tl_replay_note(self->replay, self->n++, err.text);
    }
}

static void found(void *context, const struct tl_trail_difference *difference)
{
    (void)context;
    require(difference->n > 0);
}

static void try_file(const uint8_t *data, size_t size)
{
    struct tl_trail_file file;
    struct tl_error err;
    struct replay self = {.replay = tl_replay_new(), .rows = tl_trail_rows_new()};
    FILE *in = fmemopen((void *)(uintptr_t)data, size, "r");
    require(in != NULL);
    if (tl_trail_file_read(in, &file, take, &self, &err))
        tl_trail_compare(&file, found, NULL);
    struct tl_replay_result result = tl_replay_result(self.replay);
    for (size_t i = 0; i < result.n_findings; i++)
        require(result.findings[i].leaf < self.n);
    tl_trail_file_free(&file);
    tl_replay_free(self.replay);
    tl_trail_rows_free(self.rows);
    fclose(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_note((const char *)data, size);
    try_bundle(data, size);
    if (size > 0)
        try_file(data, size);
    return 0;
}

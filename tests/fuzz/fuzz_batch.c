/* SPDX-License-Identifier: Apache-2.0 */
/* Ingest entries: any bytes are either refused, or a batch within all limits that stays the same
 * when it is encoded again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/batch.h"
#include "common/wire/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool same(const char *a, size_t a_length, const char *b, size_t b_length)
{
    return a_length == b_length &&
           (a_length == 0 || (a != NULL && b != NULL && memcmp(a, b, a_length) == 0));
}

static void compare(const struct tl_batch *a, const struct tl_batch *b)
{
    require(strcmp(a->worker, b->worker) == 0 && a->number == b->number);
    require(a->generation == b->generation && a->made_ms == b->made_ms);
    require(a->n_commands == b->n_commands);
    for (size_t i = 0; i < a->n_commands; i++) {
        const struct tl_command *x = &a->commands[i];
        const struct tl_command *y = &b->commands[i];
        require(x->kind == y->kind);
        require(memcmp(x->numbers, y->numbers, sizeof(x->numbers)) == 0);
        require(same(x->visitor, x->visitor_length, y->visitor, y->visitor_length));
        require(same(x->invite, x->invite_length, y->invite, y->invite_length));
        require(x->invite_until_ms == y->invite_until_ms);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_batch batch, again;
    struct tl_error err = {0};
    if (!tl_batch_decode(data, size, &batch, &err)) {
        require(err.kind == TL_ERR_INVALID && err.text[0] != '\0');
        return 0;
    }
    require(batch.n_commands <= TL_BATCH_COMMANDS_MAX);
    struct tl_batch_writer writer = {0};
    for (size_t i = 0; i < batch.n_commands; i++) {
        const struct tl_command *command = &batch.commands[i];
        require(command->visitor == NULL ||
                tl_visitor_valid(command->visitor, command->visitor_length));
        require(tl_batch_add(&writer, command) >= 0);
    }
    writer.generation = batch.generation;
    writer.made_ms = batch.made_ms;
    size_t length;
    const void *bytes = tl_batch_finish(&writer, batch.worker, batch.number, &length);
    require(tl_batch_decode(bytes, length, &again, &err));
    compare(&batch, &again);
    tl_batch_free(&again);
    tl_batch_free(&batch);
    free(writer.bytes);
    return 0;
}

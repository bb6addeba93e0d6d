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

static void write_command(struct tl_batch_writer *writer, const struct tl_command *command)
{
    if (command->kind == TL_COMMAND_SEEN) {
        require(tl_batch_seen(writer, command->number, command->count) >= 0);
        return;
    }
    if (command->kind == TL_COMMAND_LOST || command->kind == TL_COMMAND_CALLED) {
        require(tl_batch_recover(writer, command) >= 0);
        return;
    }
    require(tl_visitor_valid(command->visitor, command->visitor_length));
    if (command->kind == TL_COMMAND_JOIN)
        require(tl_batch_join(writer, command->visitor, command->visitor_length,
                              (unsigned)command->number) >= 0);
    else if (command->kind == TL_COMMAND_HAND_OVER)
        require(tl_batch_hand_over(writer, command) >= 0);
    else if (command->kind == TL_COMMAND_RESTORE)
        require(tl_batch_recover(writer, command) >= 0);
    else
        require(tl_batch_place(writer, command->kind, command->visitor, command->visitor_length,
                               command->number) >= 0);
}

static void compare(const struct tl_batch *a, const struct tl_batch *b)
{
    require(strcmp(a->worker, b->worker) == 0 && a->number == b->number);
    require(a->generation == b->generation && a->made_ms == b->made_ms);
    require(a->n_commands == b->n_commands);
    for (size_t i = 0; i < a->n_commands; i++) {
        const struct tl_command *x = &a->commands[i];
        const struct tl_command *y = &b->commands[i];
        require(x->kind == y->kind && x->number == y->number && x->count == y->count);
        require(memcmp(x->numbers, y->numbers, sizeof(x->numbers)) == 0);
        require(x->visitor_length == y->visitor_length);
        require(x->visitor_length == 0 || memcmp(x->visitor, y->visitor, x->visitor_length) == 0);
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
    struct tl_batch_writer *writer = tl_batch_writer_new();
    for (size_t i = 0; i < batch.n_commands; i++)
        write_command(writer, &batch.commands[i]);
    tl_batch_generation(writer, batch.generation);
    tl_batch_made(writer, batch.made_ms);
    size_t length;
    const void *bytes = tl_batch_finish(writer, batch.worker, batch.number, &length);
    require(tl_batch_decode(bytes, length, &again, &err));
    compare(&batch, &again);
    tl_batch_free(&again);
    tl_batch_free(&batch);
    tl_batch_writer_free(&writer);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ingest batches, the commands that workers send to the dispatcher: one entry of the ingest stream,
 * field "d", a msgpack array [version, worker, batch, generation, made, [command...]]. The commands
 * are in protocol.def. Every field is documented in docs/contributors/wire-format.md, which changes
 * in the same commit as these files.
 *
 * The decoder is strict and bounded: it checks sizes, counts and nesting against the bytes at hand
 * before it allocates memory. Anything unexpected is TL_ERR_INVALID, and nothing of the entry is
 * used.
 */
#ifndef TL_BATCH_H
#define TL_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

#include "generated/protocol.h"

#define TL_BATCH_VERSION      1
#define TL_BATCH_COMMANDS_MAX 1000
#define TL_BATCH_NUMBER_MAX   ((UINT64_C(1) << 53) - 1) /* exact in the functions */
#define TL_BATCH_INVITE_MAX   128                       /* bytes of an invite's id */
#define TL_BATCH_SERIAL_MAX   UINT32_MAX                /* of a hand-over */

enum { TL_COMMAND_NUMBERS = 5 };

struct tl_command {
    enum tl_command_kind kind;
    const char *visitor; /* borrowed, not terminated; NULL where the command has none */
    size_t visitor_length;
    uint64_t numbers[TL_COMMAND_NUMBERS]; /* what else it has, in the order of protocol.def */
    const char *invite; /* JOIN: id of the invite it spends, borrowed, not terminated; NULL: none */
    size_t invite_length;
    uint64_t invite_until_ms; /* until then its id is remembered as spent */
};

/* How many numbers commands of this kind have. */
size_t tl_command_numbers(enum tl_command_kind kind);

struct tl_batch {
    char worker[TL_WORKER_ID_MAX + 1];
    uint64_t number;
    uint64_t generation; /* of the places in it; 0: not known */
    uint64_t made_ms;    /* no JOIN in it was made before, Unix ms; 0: not known */
    size_t n_commands;
    struct tl_command *commands; /* owned; visitors point into the payload given to decode */
};

/* Decodes a payload; it must stay in place as long as the batch is used. */
bool tl_batch_decode(const void *bytes, size_t length, struct tl_batch *batch,
                     struct tl_error *err);
void tl_batch_free(struct tl_batch *batch);

/* Builds a batch. Zeroed: an empty one. The user sets what is of all commands, reads the rest,
 * and frees its bytes at last. */
struct tl_batch_writer {
    uint64_t generation; /* of the places in this batch and the next ones; 0: not known */
    uint64_t made_ms;    /* no JOIN in this batch and the next ones was made before this time of the
                            store, Unix ms; 0: not known */
    size_t n;            /* commands */
    unsigned char *bytes; /* room for the envelope, then the commands */
    size_t length;        /* of the commands */
    size_t capacity;
};
/* Begins the next batch. */
void tl_batch_writer_reset(struct tl_batch_writer *writer);
/* Adds a command, or a copy of it. Returns its index in the batch; -1 when the batch is full (send
 * it, reset, add again), its visitor or invite are out of bounds, or memory ran out. */
int tl_batch_add(struct tl_batch_writer *writer, const struct tl_command *command);
/* The whole payload, borrowed until the next call on the writer; NULL when out of memory. */
const void *tl_batch_finish(struct tl_batch_writer *writer, const char *worker, uint64_t number,
                            size_t *length);

#endif

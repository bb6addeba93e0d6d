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

#define TL_BATCH_VERSION      2 /* what is written; version 1 is read as well */
#define TL_BATCH_COMMANDS_MAX 1000
#define TL_BATCH_NUMBER_MAX   ((UINT64_C(1) << 53) - 1) /* exact in the functions */
#define TL_BATCH_INVITE_MAX   128                       /* bytes of an invite's id */

#define TL_BATCH_SERIAL_MAX UINT32_MAX /* of a hand-over */

enum { TL_COMMAND_NUMBERS = 4 };

struct tl_command {
    enum tl_command_kind kind;
    const char *visitor; /* borrowed from the payload, not terminated; NULL for SEEN */
    size_t visitor_length;
    uint64_t number; /* JOIN: lane; SEEN: first seq; else place */
    /* RESTORE: what follows the place. LOST and CALLED: their four numbers. HAND_OVER: serial and
     * device. */
    uint64_t numbers[TL_COMMAND_NUMBERS];
    uint64_t count;     /* SEEN */
    const char *invite; /* JOIN: id of the invite it spends, borrowed, not terminated; NULL: none */
    size_t invite_length;
    uint64_t invite_until_ms; /* until then its id is remembered as spent */
};

struct tl_batch {
    char worker[TL_WORKER_ID_MAX + 1];
    uint64_t number;
    uint64_t generation; /* of the places in it; 0: not known (version 1) */
    uint64_t made_ms;    /* no JOIN in it was made before, Unix ms; 0: not known (version 1) */
    size_t n_commands;
    struct tl_command *commands; /* owned; visitors point into the payload given to decode */
};

/* Decodes a payload; it must stay in place as long as the batch is used. */
bool tl_batch_decode(const void *bytes, size_t length, struct tl_batch *batch,
                     struct tl_error *err);
void tl_batch_free(struct tl_batch *batch);

/* Builds a batch. */
struct tl_batch_writer;
struct tl_batch_writer *tl_batch_writer_new(void);
void tl_batch_writer_free(struct tl_batch_writer **writer);
void tl_batch_writer_reset(struct tl_batch_writer *writer);
/* Each adds one command and returns its index in the batch, or -1 when the batch is full (send it,
 * reset, add again) or memory ran out. visitor is length bytes. */
int tl_batch_join(struct tl_batch_writer *writer, const char *visitor, size_t length,
                  unsigned lane);
/* A join that spends an invite: refused (TL_OUTCOME_SPENT) if the id was spent before. */
int tl_batch_join_invited(struct tl_batch_writer *writer, const char *visitor, size_t length,
                          unsigned lane, const char *invite, uint64_t invite_until_ms);
int tl_batch_place(struct tl_batch_writer *writer, enum tl_command_kind kind, const char *visitor,
                   size_t length, tl_place place); /* all others of a place */
int tl_batch_hand_over(struct tl_batch_writer *writer, const struct tl_command *command);
int tl_batch_recover(struct tl_batch_writer *writer,
                     const struct tl_command *command); /* RESTORE, LOST, CALLED */
int tl_batch_seen(struct tl_batch_writer *writer, uint64_t first_seq, uint64_t count);
size_t tl_batch_count(const struct tl_batch_writer *writer);
/* Places in this batch and the next ones are of this generation; 0, as at first: not known. */
void tl_batch_generation(struct tl_batch_writer *writer, uint64_t generation);
/* No JOIN in this batch was made before this time of the store, Unix ms; 0, as at first: not known.
 */
void tl_batch_made(struct tl_batch_writer *writer, uint64_t made_ms);
/* The whole payload, borrowed until the next call on the writer; NULL when out of memory. */
const void *tl_batch_finish(struct tl_batch_writer *writer, const char *worker, uint64_t number,
                            size_t *length);

#endif

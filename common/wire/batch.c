/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <msgpack.h>

#include "common/wire/batch.h"
#include "common/wire/fields.h"

struct tl_batch_writer {
    msgpack_sbuffer commands; /* the commands, packed one after the other */
    msgpack_sbuffer payload;  /* made by tl_batch_finish */
    size_t n;
    uint64_t generation, made_ms;
};

/* Room for the array headers, the worker's name and the numbers around the commands. */
#define ENVELOPE_MAX 80

struct tl_batch_writer *tl_batch_writer_new(void)
{
    struct tl_batch_writer *writer = calloc(1, sizeof(*writer));
    if (writer == NULL)
        return NULL;
    msgpack_sbuffer_init(&writer->commands);
    msgpack_sbuffer_init(&writer->payload);
    return writer;
}

void tl_batch_writer_free(struct tl_batch_writer **writer)
{
    if (*writer == NULL)
        return;
    msgpack_sbuffer_destroy(&(*writer)->commands);
    msgpack_sbuffer_destroy(&(*writer)->payload);
    free(*writer);
    *writer = NULL;
}

void tl_batch_writer_reset(struct tl_batch_writer *writer)
{
    msgpack_sbuffer_clear(&writer->commands);
    writer->n = 0;
}

static bool has_room(const struct tl_batch_writer *writer, size_t bytes)
{
    return writer->n < TL_BATCH_COMMANDS_MAX &&
           writer->commands.size + bytes + ENVELOPE_MAX <= TL_WIRE_BYTES_MAX;
}

/* Counts the command just packed, or removes what was packed of it when memory ran out. */
static int added(struct tl_batch_writer *writer, size_t size_before, int failed)
{
    if (failed != 0) {
        writer->commands.size = size_before;
        return -1;
    }
    return (int)writer->n++;
}

static int add_visitor_command(struct tl_batch_writer *writer, const struct tl_command *command)
{
    size_t length = command->visitor_length;
    const char *invite = command->invite;
    size_t invite_length = invite != NULL ? strlen(invite) : 0;
    if (length == 0 || length > TL_VISITOR_MAX || invite_length > TL_BATCH_INVITE_MAX ||
        !has_room(writer, length + invite_length + 32))
        return -1;
    size_t before = writer->commands.size;
    msgpack_packer pack;
    msgpack_packer_init(&pack, &writer->commands, msgpack_sbuffer_write);
    int failed = msgpack_pack_array(&pack, invite != NULL ? 5 : 3);
    failed |= msgpack_pack_uint8(&pack, (uint8_t)command->kind);
    failed |= msgpack_pack_str(&pack, length);
    failed |= msgpack_pack_str_body(&pack, command->visitor, length);
    failed |= msgpack_pack_uint64(&pack, command->number);
    if (invite != NULL) {
        failed |= msgpack_pack_str(&pack, invite_length);
        failed |= msgpack_pack_str_body(&pack, invite, invite_length);
        failed |= msgpack_pack_uint64(&pack, command->invite_until_ms);
    }
    return added(writer, before, failed);
}

int tl_batch_join(struct tl_batch_writer *writer, const char *visitor, size_t length, unsigned lane)
{
    return tl_batch_join_invited(writer, visitor, length, lane, NULL, 0);
}

int tl_batch_join_invited(struct tl_batch_writer *writer, const char *visitor, size_t length,
                          unsigned lane, const char *invite, uint64_t invite_until_ms)
{
    const struct tl_command command = {.kind = TL_COMMAND_JOIN,
                                       .visitor = visitor,
                                       .visitor_length = length,
                                       .number = lane,
                                       .invite = invite,
                                       .invite_until_ms = invite_until_ms};
    return add_visitor_command(writer, &command);
}

int tl_batch_place(struct tl_batch_writer *writer, enum tl_command_kind kind, const char *visitor,
                   size_t length, tl_place place)
{
    const struct tl_command command = {
        .kind = kind, .visitor = visitor, .visitor_length = length, .number = place};
    return add_visitor_command(writer, &command);
}

int tl_batch_hand_over(struct tl_batch_writer *writer, const struct tl_command *command)
{
    size_t length = command->visitor_length;
    if (length == 0 || length > TL_VISITOR_MAX || !has_room(writer, length + 48))
        return -1;
    size_t before = writer->commands.size;
    msgpack_packer pack;
    msgpack_packer_init(&pack, &writer->commands, msgpack_sbuffer_write);
    int failed = msgpack_pack_array(&pack, 5);
    failed |= msgpack_pack_uint8(&pack, TL_COMMAND_HAND_OVER);
    failed |= msgpack_pack_str(&pack, length);
    failed |= msgpack_pack_str_body(&pack, command->visitor, length);
    failed |= msgpack_pack_uint64(&pack, command->number);
    failed |= msgpack_pack_uint64(&pack, command->numbers[0]);
    failed |= msgpack_pack_uint64(&pack, command->numbers[1]);
    return added(writer, before, failed);
}

int tl_batch_recover(struct tl_batch_writer *writer, const struct tl_command *command)
{
    bool named = command->kind == TL_COMMAND_RESTORE;
    size_t length = named ? command->visitor_length : 0;
    if (length > TL_VISITOR_MAX || named == (length == 0) || !has_room(writer, length + 64))
        return -1;
    size_t before = writer->commands.size;
    msgpack_packer pack;
    msgpack_packer_init(&pack, &writer->commands, msgpack_sbuffer_write);
    int failed = msgpack_pack_array(&pack, (named ? 3 : 1) + TL_COMMAND_NUMBERS);
    failed |= msgpack_pack_uint8(&pack, (uint8_t)command->kind);
    if (named) {
        failed |= msgpack_pack_str(&pack, length);
        failed |= msgpack_pack_str_body(&pack, command->visitor, length);
        failed |= msgpack_pack_uint64(&pack, command->number);
    }
    for (size_t i = 0; i < TL_COMMAND_NUMBERS; i++)
        failed |= msgpack_pack_uint64(&pack, command->numbers[i]);
    return added(writer, before, failed);
}

int tl_batch_seen(struct tl_batch_writer *writer, uint64_t first_seq, uint64_t count)
{
    if (!has_room(writer, 24))
        return -1;
    size_t before = writer->commands.size;
    msgpack_packer pack;
    msgpack_packer_init(&pack, &writer->commands, msgpack_sbuffer_write);
    int failed = msgpack_pack_array(&pack, 3);
    failed |= msgpack_pack_uint8(&pack, TL_COMMAND_SEEN);
    failed |= msgpack_pack_uint64(&pack, first_seq);
    failed |= msgpack_pack_uint64(&pack, count);
    return added(writer, before, failed);
}

size_t tl_batch_count(const struct tl_batch_writer *writer)
{
    return writer->n;
}

void tl_batch_generation(struct tl_batch_writer *writer, uint64_t generation)
{
    writer->generation = generation;
}

void tl_batch_made(struct tl_batch_writer *writer, uint64_t made_ms)
{
    writer->made_ms = made_ms;
}

const void *tl_batch_finish(struct tl_batch_writer *writer, const char *worker, uint64_t number,
                            size_t *length)
{
    msgpack_sbuffer_clear(&writer->payload);
    msgpack_packer pack;
    msgpack_packer_init(&pack, &writer->payload, msgpack_sbuffer_write);
    size_t worker_length = strlen(worker);
    int failed = msgpack_pack_array(&pack, 6);
    failed |= msgpack_pack_uint8(&pack, TL_BATCH_VERSION);
    failed |= msgpack_pack_str(&pack, worker_length);
    failed |= msgpack_pack_str_body(&pack, worker, worker_length);
    failed |= msgpack_pack_uint64(&pack, number);
    failed |= msgpack_pack_uint64(&pack, writer->generation);
    failed |= msgpack_pack_uint64(&pack, writer->made_ms);
    failed |= msgpack_pack_array(&pack, writer->n);
    if (writer->n > 0)
        failed |=
            msgpack_sbuffer_write(&writer->payload, writer->commands.data, writer->commands.size);
    if (failed != 0)
        return NULL;
    *length = writer->payload.size;
    return writer->payload.data;
}

static bool decode_visitor(struct tl_fields *fields, uint64_t limit, struct tl_command *command)
{
    if (!tl_fields_string(fields, &command->visitor, &command->visitor_length) ||
        !tl_fields_uint(fields, limit, &command->number))
        return false;
    if (!tl_visitor_valid(command->visitor, command->visitor_length))
        return tl_error_set(fields->err, TL_ERR_INVALID,
                            "a visitor id that is not 1 to 64 printable ASCII characters");
    return true;
}

/* The two fields of the invite that a JOIN may carry. */
static bool decode_invite(struct tl_fields *fields, struct tl_command *command)
{
    if (fields->at == fields->end)
        return true;
    if (!tl_fields_string(fields, &command->invite, &command->invite_length) ||
        !tl_fields_uint(fields, TL_BATCH_NUMBER_MAX, &command->invite_until_ms))
        return false;
    if (command->invite_length == 0 || command->invite_length > TL_BATCH_INVITE_MAX)
        return tl_error_set(fields->err, TL_ERR_INVALID, "an invite's id of %zu bytes",
                            command->invite_length);
    return true;
}

static bool decode_numbers(struct tl_fields *fields, struct tl_command *command)
{
    for (size_t i = 0; i < TL_COMMAND_NUMBERS; i++) {
        if (!tl_fields_uint(fields, TL_BATCH_NUMBER_MAX, &command->numbers[i]))
            return false;
    }
    return true;
}

/* Serial 0 is that of a place which was never handed over. */
static bool decode_hand_over(struct tl_fields *fields, struct tl_command *command)
{
    if (!tl_fields_uint(fields, TL_BATCH_SERIAL_MAX, &command->numbers[0]) ||
        !tl_fields_uint(fields, TL_BATCH_NUMBER_MAX, &command->numbers[1]))
        return false;
    return command->numbers[0] > 0 ||
           tl_error_set(fields->err, TL_ERR_INVALID, "a hand-over with the serial 0");
}

static bool decode_command(const msgpack_object *object, struct tl_command *command,
                           struct tl_error *err)
{
    struct tl_fields fields;
    uint64_t kind;
    if (!tl_fields_open(&fields, object, 3, 3 + TL_COMMAND_NUMBERS, err) ||
        !tl_fields_uint(&fields, UINT64_MAX, &kind))
        return false;
    command->kind = (enum tl_command_kind)kind;
    switch (kind) {
    case TL_COMMAND_JOIN:
        return decode_visitor(&fields, TL_LANES_MAX - 1, command) &&
               decode_invite(&fields, command) && tl_fields_end(&fields);
    case TL_COMMAND_LEAVE:
    case TL_COMMAND_COMPLETE:
    case TL_COMMAND_RENEW:
    case TL_COMMAND_CLAIM:
    case TL_COMMAND_EXTEND:
        return decode_visitor(&fields, TL_PLACE_MAX, command) && tl_fields_end(&fields);
    case TL_COMMAND_HAND_OVER:
        return decode_visitor(&fields, TL_PLACE_MAX, command) &&
               decode_hand_over(&fields, command) && tl_fields_end(&fields);
    case TL_COMMAND_SEEN:
        return tl_fields_uint(&fields, TL_PLACE_SEQ_MAX, &command->number) &&
               tl_fields_uint(&fields, TL_PLACE_SEQ_MAX, &command->count) && tl_fields_end(&fields);
    case TL_COMMAND_RESTORE:
        return decode_visitor(&fields, TL_PLACE_MAX, command) && decode_numbers(&fields, command) &&
               tl_fields_end(&fields);
    case TL_COMMAND_LOST:
    case TL_COMMAND_CALLED:
        return decode_numbers(&fields, command) && tl_fields_end(&fields);
    default:
        return tl_error_set(err, TL_ERR_INVALID, "command %llu is not one this version knows",
                            (unsigned long long)kind);
    }
}

/* Version 1 has neither generation nor time. */
static bool decode_origin(struct tl_fields *fields, uint64_t version, struct tl_batch *batch)
{
    return version == 1 || (tl_fields_uint(fields, TL_BATCH_NUMBER_MAX, &batch->generation) &&
                            tl_fields_uint(fields, TL_BATCH_NUMBER_MAX, &batch->made_ms));
}

static bool decode_batch(const msgpack_object *object, struct tl_batch *batch, struct tl_error *err)
{
    struct tl_fields fields;
    const msgpack_object *list;
    uint64_t version;
    if (!tl_fields_open(&fields, object, 4, 6, err) ||
        !tl_fields_version(&fields, 1, TL_BATCH_VERSION, &version) ||
        !tl_fields_name(&fields, batch->worker, sizeof(batch->worker)) ||
        !tl_fields_uint(&fields, TL_BATCH_NUMBER_MAX, &batch->number) ||
        !decode_origin(&fields, version, batch) || !tl_fields_array(&fields, &list) ||
        !tl_fields_end(&fields))
        return false;
    size_t n = list->via.array.size;
    if (n > TL_BATCH_COMMANDS_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "%zu commands in a batch; the limit is %d", n,
                            TL_BATCH_COMMANDS_MAX);
    batch->commands = calloc(n > 0 ? n : 1, sizeof(*batch->commands));
    if (batch->commands == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a batch of %zu commands", n);
    for (size_t i = 0; i < n; i++)
        if (!decode_command(&list->via.array.ptr[i], &batch->commands[i], err))
            return tl_error_prefix(err, "command %zu", i);
    batch->n_commands = n;
    return true;
}

bool tl_batch_decode(const void *bytes, size_t length, struct tl_batch *batch, struct tl_error *err)
{
    *batch = (struct tl_batch){0};
    struct tl_unpacked unpacked;
    if (!tl_unpack(bytes, length, &unpacked, err))
        return false;
    bool ok = decode_batch(&unpacked.object, batch, err);
    tl_unpacked_free(&unpacked);
    if (!ok)
        tl_batch_free(batch);
    return ok;
}

void tl_batch_free(struct tl_batch *batch)
{
    free(batch->commands);
    batch->commands = NULL;
    batch->n_commands = 0;
}

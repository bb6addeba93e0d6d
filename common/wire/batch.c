/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/big_endian.h"
#include "common/base/grow.h"
#include "common/wire/batch.h"
#include "common/wire/fields.h"

/* What a command has behind its kind: a visitor, then this many numbers. A JOIN may have an invite
 * and its time after them. */
static const struct layout {
    bool visitor;
    unsigned char n;                     /* 0: there is no such command */
    uint64_t limits[TL_COMMAND_NUMBERS]; /* 0: TL_BATCH_NUMBER_MAX */
} layouts[] = {
    [TL_COMMAND_JOIN] = {true, 1, {TL_LANES_MAX - 1}},
    [TL_COMMAND_LEAVE] = {true, 1, {TL_PLACE_MAX}},
    [TL_COMMAND_COMPLETE] = {true, 1, {TL_PLACE_MAX}},
    [TL_COMMAND_RENEW] = {true, 1, {TL_PLACE_MAX}},
    [TL_COMMAND_SEEN] = {false, 2, {TL_PLACE_SEQ_MAX, TL_PLACE_SEQ_MAX}},
    [TL_COMMAND_RESTORE] = {true, 5, {TL_PLACE_MAX}},
    [TL_COMMAND_LOST] = {false, 4, {0}},
    [TL_COMMAND_CALLED] = {false, 4, {0}},
    [TL_COMMAND_CLAIM] = {true, 1, {TL_PLACE_MAX}},
    [TL_COMMAND_EXTEND] = {true, 1, {TL_PLACE_MAX}},
    [TL_COMMAND_HAND_OVER] = {true, 3, {TL_PLACE_MAX, TL_BATCH_SERIAL_MAX}},
};

enum { KINDS = sizeof(layouts) / sizeof(layouts[0]) };

size_t tl_command_numbers(enum tl_command_kind kind)
{
    return layouts[kind].n;
}

static size_t fields_of(const struct layout *layout, bool invited)
{
    return (size_t)1 + layout->visitor + layout->n + (invited ? 2 : 0);
}

/* ---- writing ---- */

enum {
    ENVELOPE_MAX = 80, /* bytes of what stands before the commands */
    COMMAND_MAX = 256, /* bytes of a command: kind, visitor, numbers, invite */
};

_Static_assert(ENVELOPE_MAX + TL_BATCH_COMMANDS_MAX * COMMAND_MAX <= TL_WIRE_BYTES_MAX,
               "a full batch is within the limit");
_Static_assert(COMMAND_MAX >=
                   2 + 2 + TL_VISITOR_MAX + 9 * (TL_COMMAND_NUMBERS + 1) + 2 + TL_BATCH_INVITE_MAX,
               "the longest command fits");

void tl_batch_writer_reset(struct tl_batch_writer *writer)
{
    writer->length = 0;
    writer->n = 0;
}

/* Makes room for one more command. */
static bool reserve(struct tl_batch_writer *writer)
{
    unsigned char *bytes =
        tl_grow(writer->bytes, &writer->capacity, ENVELOPE_MAX + writer->length + COMMAND_MAX, 1);
    if (bytes == NULL)
        return false;
    writer->bytes = bytes;
    return true;
}

/* Each writes a value of msgpack in its shortest form, and returns its end. */
static unsigned char *put_number(unsigned char *at, uint64_t number)
{
    unsigned width = number > UINT32_MAX ? 3 : number > UINT16_MAX ? 2 : number > UINT8_MAX ? 1 : 0;
    if (number < 0x80) {
        *at = (unsigned char)number;
        return at + 1;
    }
    *at = (unsigned char)(0xcc + width);
    tl_put_be(at + 1, number, (size_t)1 << width);
    return at + 1 + ((size_t)1 << width);
}

/* Of at most 255 bytes. */
static unsigned char *put_string(unsigned char *at, const char *text, size_t length)
{
    if (length > 0x1f)
        *at++ = 0xd9;
    *at++ = (unsigned char)(length > 0x1f ? length : 0xa0 | length);
    memcpy(at, text, length);
    return at + length;
}

/* The head of an array of at most 65,535 elements. */
static unsigned char *put_array(unsigned char *at, size_t n)
{
    if (n <= 0x0f) {
        *at = (unsigned char)(0x90 | n);
        return at + 1;
    }
    *at = 0xdc;
    tl_put_be(at + 1, n, 2);
    return at + 3;
}

int tl_batch_add(struct tl_batch_writer *writer, const struct tl_command *command)
{
    const struct layout *layout = &layouts[command->kind];
    bool invited = command->invite != NULL;
    if ((layout->visitor &&
         (command->visitor_length == 0 || command->visitor_length > TL_VISITOR_MAX)) ||
        (invited && (command->invite_length == 0 || command->invite_length > TL_BATCH_INVITE_MAX)))
        return -1;
    if (writer->n == TL_BATCH_COMMANDS_MAX || !reserve(writer))
        return -1;
    unsigned char *commands = writer->bytes + ENVELOPE_MAX;
    unsigned char *at = put_array(commands + writer->length, fields_of(layout, invited));
    at = put_number(at, command->kind);
    if (layout->visitor)
        at = put_string(at, command->visitor, command->visitor_length);
    for (size_t i = 0; i < layout->n; i++)
        at = put_number(at, command->numbers[i]);
    if (invited) {
        at = put_string(at, command->invite, command->invite_length);
        at = put_number(at, command->invite_until_ms);
    }
    writer->length = (size_t)(at - commands);
    return (int)writer->n++;
}

const void *tl_batch_finish(struct tl_batch_writer *writer, const char *worker, uint64_t number,
                            size_t *length)
{
    unsigned char envelope[ENVELOPE_MAX];
    if (!reserve(writer))
        return NULL;
    unsigned char *at = put_array(envelope, 6);
    at = put_number(at, TL_BATCH_VERSION);
    at = put_string(at, worker, strnlen(worker, TL_WORKER_ID_MAX));
    at = put_number(at, number);
    at = put_number(at, writer->generation);
    at = put_number(at, writer->made_ms);
    at = put_array(at, writer->n);
    size_t used = (size_t)(at - envelope);
    memcpy(writer->bytes + ENVELOPE_MAX - used, envelope, used);
    *length = used + writer->length;
    return writer->bytes + ENVELOPE_MAX - used;
}

/* ---- reading ---- */

static bool decode_visitor(struct tl_fields *fields, struct tl_command *command)
{
    if (!tl_fields_string(fields, &command->visitor, &command->visitor_length))
        return false;
    return tl_visitor_valid(command->visitor, command->visitor_length) ||
           tl_error_set(fields->err, TL_ERR_INVALID,
                        "a visitor id that is not 1 to %d printable ASCII characters",
                        TL_VISITOR_MAX);
}

static bool decode_invite(struct tl_fields *fields, struct tl_command *command)
{
    if (!tl_fields_string(fields, &command->invite, &command->invite_length) ||
        !tl_fields_uint(fields, TL_BATCH_NUMBER_MAX, &command->invite_until_ms))
        return false;
    return (command->invite_length > 0 && command->invite_length <= TL_BATCH_INVITE_MAX) ||
           tl_error_set(fields->err, TL_ERR_INVALID, "an invite's id of %zu bytes",
                        command->invite_length);
}

static bool decode_command(struct tl_fields *fields, struct tl_command *command)
{
    size_t n;
    uint64_t kind;
    if (!tl_fields_array(fields, &n) || !tl_fields_uint(fields, UINT64_MAX, &kind))
        return false;
    if (kind >= KINDS || layouts[kind].n == 0)
        return tl_error_set(fields->err, TL_ERR_INVALID,
                            "command %llu is not one this version knows", (unsigned long long)kind);
    const struct layout *layout = &layouts[kind];
    bool invited = kind == TL_COMMAND_JOIN && n == fields_of(layout, true);
    command->kind = (enum tl_command_kind)kind;
    if (!tl_fields_expect(fields, n, fields_of(layout, invited)) ||
        (layout->visitor && !decode_visitor(fields, command)))
        return false;
    for (size_t i = 0; i < layout->n; i++) {
        uint64_t limit = layout->limits[i] != 0 ? layout->limits[i] : TL_BATCH_NUMBER_MAX;
        if (!tl_fields_uint(fields, limit, &command->numbers[i]))
            return false;
    }
    if (kind == TL_COMMAND_HAND_OVER && command->numbers[1] == 0)
        return tl_error_set(fields->err, TL_ERR_INVALID, "a hand-over with the serial 0");
    return !invited || decode_invite(fields, command);
}

static bool decode_batch(struct tl_fields *fields, struct tl_batch *batch)
{
    size_t n;
    if (!tl_fields_worker(fields, batch->worker) ||
        !tl_fields_uint(fields, TL_BATCH_NUMBER_MAX, &batch->number) ||
        !tl_fields_uint(fields, TL_BATCH_NUMBER_MAX, &batch->generation) ||
        !tl_fields_uint(fields, TL_BATCH_NUMBER_MAX, &batch->made_ms) ||
        !tl_fields_array(fields, &n))
        return false;
    if (n > TL_BATCH_COMMANDS_MAX)
        return tl_error_set(fields->err, TL_ERR_INVALID, "%zu commands in a batch; the limit is %d",
                            n, TL_BATCH_COMMANDS_MAX);
    batch->commands = calloc(n > 0 ? n : 1, sizeof(*batch->commands));
    if (batch->commands == NULL)
        return tl_error_set(fields->err, TL_ERR_NOMEM, "no memory for a batch of %zu commands", n);
    for (; batch->n_commands < n; batch->n_commands++)
        if (!decode_command(fields, &batch->commands[batch->n_commands]))
            return tl_error_prefix(fields->err, "command %zu", batch->n_commands);
    return tl_fields_end(fields);
}

bool tl_batch_decode(const void *bytes, size_t length, struct tl_batch *batch, struct tl_error *err)
{
    struct tl_fields fields = {.err = err};
    *batch = (struct tl_batch){0};
    if (tl_fields_begin(&fields, bytes, length, TL_BATCH_VERSION, 6) &&
        decode_batch(&fields, batch))
        return true;
    tl_batch_free(batch);
    return false;
}

void tl_batch_free(struct tl_batch *batch)
{
    free(batch->commands);
    batch->commands = NULL;
    batch->n_commands = 0;
}

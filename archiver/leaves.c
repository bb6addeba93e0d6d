/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archiver/leaves.h"
#include "common/base/big_endian.h"
#include "common/base/grow.h"

void tl_trail_leaves_free(struct tl_trail_leaves *leaves)
{
    free(leaves->bytes);
    *leaves = (struct tl_trail_leaves){0};
}

static bool append(struct tl_trail_leaves *leaves, const struct tl_leaf *leaf)
{
    unsigned char *bytes =
        tl_grow(leaves->bytes, &leaves->capacity, leaves->length + 2 + TL_LEAF_MAX + 1, 1);
    if (bytes == NULL)
        return false;
    leaves->bytes = bytes;
    size_t length = tl_leaf_write(leaf, (char *)bytes + leaves->length + 2);
    tl_put_be(bytes + leaves->length, length, 2);
    leaves->length += 2 + length;
    leaves->n++;
    return true;
}

/* Of a note without visitors. */
static void describe_whole(struct tl_leaf *leaf, struct tl_note *note)
{
    size_t length;
    const char *rules;
    if (note->kind == TL_NOTE_BEGINS) {
        const char *why = tl_leaf_gap_name(tl_note_number(note));
        uint64_t since = tl_note_number(note);
        snprintf(leaf->detail, sizeof(leaf->detail), "%s:%" PRIu64 ":%" PRIu64, why, note->detail,
                 since);
    } else if (note->kind == TL_NOTE_RULES) {
        rules = tl_note_rules(note, &length);
        snprintf(leaf->detail, sizeof(leaf->detail), "%.*s", (int)length, rules);
    }
}

/* Of a note with visitors. */
static void describe(struct tl_leaf *leaf, const struct tl_note *note)
{
    switch (note->kind) {
    case TL_NOTE_RESTORED:
        snprintf(leaf->detail, sizeof(leaf->detail), "%" PRIu64, note->detail);
        break;
    case TL_NOTE_ENDED:
        snprintf(leaf->detail, sizeof(leaf->detail), "%s",
                 tl_leaf_reason_name((enum tl_reason)note->detail));
        break;
    case TL_NOTE_LANE:
        snprintf(leaf->detail, sizeof(leaf->detail), "%u:%" PRIu64, tl_place_lane(note->detail),
                 tl_place_seq(note->detail));
        break;
    default:
        break;
    }
}

bool tl_trail_leaves_add(struct tl_trail_leaves *leaves, const unsigned char *key,
                         const struct tl_record *record, struct tl_note note)
{
    const char *visitor;
    size_t length;
    unsigned char salt[TL_LEAF_SALT_BYTES];
    char who[TL_LEAF_WHO_SIZE];
    if (tl_leaf_kind_name(note.kind) == NULL)
        return true;
    struct tl_leaf leaf = {.event = record->event, .ms = record->at_ms, .kind = note.kind};
    if (note.kind == TL_NOTE_BEGINS || note.kind == TL_NOTE_RULES || note.kind == TL_NOTE_ALL ||
        note.kind == TL_NOTE_DELETED) {
        describe_whole(&leaf, &note);
        return append(leaves, &leaf);
    }
    for (uint64_t i = 0; tl_note_visitor(&note, &visitor, &length, &leaf.place); i++) {
        tl_leaf_salt(key, record->generation, tl_place_seq(leaf.place), salt);
        tl_leaf_who(salt, visitor, length, leaf.who);
        describe(&leaf, &note);
        if (note.kind == TL_NOTE_DRAWN) {
            tl_leaf_salt(key, record->generation, note.detail + i, salt);
            tl_leaf_who(salt, visitor, length, who);
            snprintf(leaf.detail, sizeof(leaf.detail), "%u:%" PRIu64 ":%s",
                     tl_place_lane(leaf.place), note.detail + i, who);
        }
        if (!append(leaves, &leaf))
            return false;
        while (note.kind == TL_NOTE_STAYS && note.n_numbers > 0)
            tl_note_number(&note); /* more than places */
    }
    return true;
}

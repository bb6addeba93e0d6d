/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the record, and the rows that remain of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "archiver/batch.h"
#include "archiver/rows.h"
#include "common/archive/tlog.h"
#include "common/auth/secret_file.h"
#include "common/wire/record.h"

/* Writes msgpack: whole numbers below 2^16, short texts and arrays. */
struct entry {
    unsigned char bytes[512];
    size_t length;
};

static void put_array(struct entry *entry, size_t n)
{
    entry->bytes[entry->length++] = (unsigned char)(0x90 + n);
}

static void put_number(struct entry *entry, unsigned value)
{
    entry->bytes[entry->length++] = 0xcd;
    entry->bytes[entry->length++] = (unsigned char)(value >> 8);
    entry->bytes[entry->length++] = (unsigned char)(value & 0xff);
}

static void put_text(struct entry *entry, const char *text)
{
    entry->bytes[entry->length++] = (unsigned char)(0xa0 + strlen(text));
    memcpy(entry->bytes + entry->length, text, strlen(text));
    entry->length += strlen(text);
}

static struct entry entry_of(unsigned event, unsigned at)
{
    struct entry entry = {.length = 0};
    put_array(&entry, 4);
    put_number(&entry, TL_RECORD_VERSION);
    put_number(&entry, 7);
    put_number(&entry, event);
    put_number(&entry, at);
    return entry;
}

/* A note about visitors `a` and, unless NULL, `b`, who stand in a row from this place on. */
static void put_note(struct entry *entry, enum tl_record_note kind, unsigned detail, const char *a,
                     const char *b, unsigned place)
{
    put_array(entry, 4);
    put_number(entry, kind);
    put_number(entry, detail);
    char both[32];
    snprintf(both, sizeof(both), "%s%s%s", a, b != NULL ? " " : "", b != NULL ? b : "");
    put_text(entry, both);
    put_array(entry, 2);
    put_number(entry, place);
    put_number(entry, b != NULL ? 2 : 1);
}

static void take(struct tl_archive_batch *batch, const struct entry *entry)
{
    struct tl_error err = {0};
    struct tl_record record;
    assert_true(tl_record_open(entry->bytes, entry->length, &record, &err));
    struct tl_archive_part *part = tl_archive_batch_find(batch, "q", record.generation);
    if (part == NULL)
        part = tl_archive_batch_add(batch, "q", record.generation);
    assert_non_null(part);
    assert_true(tl_archive_batch_take(batch, part, &record, &err));
}

static void a_place_has_one_row_with_all_that_happened(void **state)
{
    (void)state;
    struct tl_archive_batch batch = {0};
    struct entry joined = entry_of(10, 100), admitted = entry_of(11, 200),
                 ended = entry_of(12, 300);
    put_note(&joined, TL_NOTE_ENTERED, 0, "anna", "ben", 41);
    put_note(&admitted, TL_NOTE_ADMITTED, 900, "anna", NULL, 41);
    put_note(&admitted, TL_NOTE_CLAIMED, 950, "anna", NULL, 41);
    put_note(&ended, TL_NOTE_ENDED, TL_REASON_LEFT, "ben", NULL, 42);
    take(&batch, &joined);
    take(&batch, &admitted);
    take(&batch, &ended);
    assert_int_equal(batch.n_rows, 2);
    const struct tl_entry_row *anna = &batch.rows[0], *ben = &batch.rows[1];
    assert_memory_equal(batch.names + anna->visitor, "anna", anna->length);
    assert_int_equal(anna->status, TL_ENTRY_ACTIVE);
    assert_int_equal(anna->joined_ms, 100);
    assert_int_equal(anna->admitted_ms, 200);
    assert_int_equal(anna->claimed_ms, 200);
    assert_int_equal(anna->deadline_ms, 950);
    assert_int_equal(anna->event, 11);
    assert_int_equal(ben->status, TL_ENTRY_LEFT);
    assert_int_equal(ben->ended_ms, 300);
    assert_int_equal(batch.parts[0].event, 12);
    tl_archive_batch_free(&batch);
}

static void what_was_written_is_skipped(void **state)
{
    (void)state;
    struct tl_archive_batch batch = {0};
    struct entry first = entry_of(10, 100);
    put_note(&first, TL_NOTE_ENTERED, 0, "anna", NULL, 41);
    tl_archive_batch_add(&batch, "q", 7)->written = 10;
    take(&batch, &first);
    assert_int_equal(batch.n_rows, 0);
    struct entry second = entry_of(11, 100);
    put_note(&second, TL_NOTE_ENTERED, 0, "ben", NULL, 42);
    take(&batch, &second);
    take(&batch, &second);
    assert_int_equal(batch.n_rows, 1);
    tl_archive_batch_free(&batch);
}

static void a_note_about_many_closes_the_batch(void **state)
{
    (void)state;
    struct tl_archive_batch batch = {0};
    struct entry entry = entry_of(10, 100);
    put_note(&entry, TL_NOTE_DRAWN, 60, "anna", "ben", 41);
    take(&batch, &entry);
    assert_true(batch.closed);
    assert_int_equal(batch.n_notes, 1);
    const char *visitor;
    size_t length;
    tl_place place;
    assert_true(tl_note_visitor(&batch.notes[0].note, &visitor, &length, &place));
    assert_int_equal(place, 41);
    assert_true(tl_note_visitor(&batch.notes[0].note, &visitor, &length, &place));
    assert_memory_equal(visitor, "ben", length);
    assert_int_equal(place, 42);
    assert_false(tl_note_visitor(&batch.notes[0].note, &visitor, &length, &place));
    tl_archive_batch_reset(&batch);
    assert_false(batch.closed);
    tl_archive_batch_free(&batch);
}

static void a_damaged_entry_is_refused_as_a_whole(void **state)
{
    (void)state;
    struct tl_error err = {0};
    struct tl_record record;
    struct entry entry = entry_of(10, 100);
    put_note(&entry, TL_NOTE_ENTERED, 0, "anna", NULL, 41);
    for (size_t length = 0; length < entry.length; length++) {
        bool is_head = length == 13; /* an entry may have no note */
        assert_int_equal(tl_record_open(entry.bytes, length, &record, &err), is_head);
    }
    entry.bytes[entry.length - 1] = 2; /* places, of one visitor */
    assert_false(tl_record_open(entry.bytes, entry.length, &record, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    entry.bytes[3] = TL_RECORD_VERSION + 1;
    assert_false(tl_record_open(entry.bytes, entry.length, &record, &err));
    assert_int_equal(err.kind, TL_ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "upgrade"));
}

static void rows_of_copy_have_all_columns(void **state)
{
    (void)state;
    struct tl_archive_batch batch = {0};
    struct tl_text out = {0};
    struct tl_error err = {0};
    struct entry entry = entry_of(10, 100);
    put_note(&entry, TL_NOTE_ENTERED, 0, "anna", NULL, 41);
    take(&batch, &entry);
    assert_true(tl_rows_write(&batch, NULL, &out, &err));
    assert_memory_equal(out.data, "PGCOPY\n\377\r\n", 12);
    assert_memory_equal(out.data + 19, "\0\20", 2); /* 16 columns */
    assert_memory_equal(out.data + out.length - 14, "\0\0\0\4anna\377\377\377\377\377\377", 14);
    tl_text_free(&out);
    tl_archive_batch_free(&batch);
}

/* But for what happens within a session. */
static void each_note_is_a_leaf_for_each_visitor(void **state)
{
    static const unsigned char key[TL_SECRET_KEY_BYTES] = {1};
    static const char *const kinds[] = {"entered 0 41", "entered 0 42", "lane 0 42",
                                        "drawn 0 41",   "ended 0 41",   "rules - -"};
    static const char *const details[] = {
        "-", "-", "0:77", "0:900:1OHYwYwqeLL4Zupf3HA_Rw", "left", "mode=open"};
    (void)state;
    struct tl_archive_batch batch = {.salts = key};
    struct entry entry = entry_of(10, 100);
    put_note(&entry, TL_NOTE_ENTERED, 0, "anna", "ben", 41);
    put_note(&entry, TL_NOTE_LANE, 77, "ben", NULL, 42);
    put_note(&entry, TL_NOTE_DRAWN, 900, "anna", NULL, 41);
    put_note(&entry, TL_NOTE_CLAIMED, 900, "anna", NULL, 41);
    put_note(&entry, TL_NOTE_ENDED, TL_REASON_LEFT, "anna", NULL, 41);
    put_array(&entry, 4);
    put_number(&entry, TL_NOTE_RULES);
    put_number(&entry, 0);
    put_text(&entry, "mode=open");
    put_array(&entry, 0);
    take(&batch, &entry);
    const struct tl_trail_leaves *leaves = &batch.parts[0].leaves;
    assert_int_equal(leaves->n, 6);
    assert_int_equal(batch.n_leaves, 6);
    const unsigned char *at = leaves->bytes;
    size_t left = leaves->length, length;
    const char *line;
    for (size_t i = 0; i < 6; i++) {
        char text[TL_LEAF_MAX + 1], begin[64];
        assert_true(tl_bundle_next(&at, &left, &line, &length));
        snprintf(text, sizeof(text), "%.*s", (int)length, line);
        snprintf(begin, sizeof(begin), "10 100 %s ", kinds[i]);
        assert_memory_equal(text, begin, strlen(begin));
        assert_string_equal(strrchr(text, ' ') + 1, details[i]);
    }
    assert_int_equal(batch.rows[0].leaf, 1);
    assert_int_equal(batch.rows[1].leaf, 2);
    tl_archive_batch_reset(&batch);
    assert_int_equal(batch.n_leaves, 0);
    tl_archive_batch_free(&batch);
}

static void a_pseudonym_depends_on_the_key(void **state)
{
    (void)state;
    unsigned char key[32] = {1};
    char first[TL_VISITOR_MAX + 1], again[TL_VISITOR_MAX + 1], other[TL_VISITOR_MAX + 1];
    tl_rows_name(key, "anna", 4, first);
    tl_rows_name(key, "anna", 4, again);
    key[0] = 2;
    tl_rows_name(key, "anna", 4, other);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    assert_int_equal(strlen(first), 32);
    tl_rows_name(NULL, "anna", 4, first);
    assert_string_equal(first, "anna");
}

static void expect_change(const unsigned char *key, const char *members, const char *expected)
{
    char *text = tl_rows_change(key, members);
    assert_string_equal(text, expected);
    free(text);
}

static void a_change_names_its_visitor_as_rows_do(void **state)
{
    (void)state;
    const unsigned char key[32] = {1};
    char name[TL_VISITOR_MAX + 1], expected[128];
    tl_rows_name(key, "a\"b/c", 5, name);
    snprintf(expected, sizeof(expected), "{\"visitor\":\"%s\",\"lane\":\"vip\"}", name);
    expect_change(key, "{\"visitor\":\"a\\\"b\\/c\",\"lane\":\"vip\"}", expected);
    expect_change(NULL, "{\"visitor\":\"anna\"}", "{\"visitor\":\"anna\"}");
    expect_change(key, "{\"capacity\":\"2\"}", "{\"capacity\":\"2\"}");
    expect_change(key, "{\"visitor\":\"anna", "{}");
    expect_change(key, "[]", "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_has_one_row_with_all_that_happened),
        cmocka_unit_test(what_was_written_is_skipped),
        cmocka_unit_test(a_note_about_many_closes_the_batch),
        cmocka_unit_test(a_damaged_entry_is_refused_as_a_whole),
        cmocka_unit_test(rows_of_copy_have_all_columns),
        cmocka_unit_test(each_note_is_a_leaf_for_each_visitor),
        cmocka_unit_test(a_pseudonym_depends_on_the_key),
        cmocka_unit_test(a_change_names_its_visitor_as_rows_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

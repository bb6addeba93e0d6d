/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/auth/keyring.h"
#include "common/auth/secret_file.h"
#include "common/auth/ticket.h"
#include "common/wire/names.h"

static const char key_a[] =
    "0000000a 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
static const char key_b[] =
    "0000000b ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/tl-ticket-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path_of("given.keys"));
    unlink(path_of("deep.d/made.keys"));
    rmdir(path_of("deep.d"));
    return rmdir(folder);
}

static struct tl_keyring *keyring_of(const char *text, struct tl_error *err)
{
    const char *path = path_of("given.keys");
    unlink(path);
    assert_true(tl_secret_create(path, text, strlen(text), "keys", NULL));
    return tl_keyring_load(path, false, err);
}

static struct tl_keyring *good_keyring(const char *text)
{
    struct tl_error err = {0};
    struct tl_keyring *keyring = keyring_of(text, &err);
    if (keyring == NULL)
        fail_msg("%s", err.text);
    return keyring;
}

static const struct tl_ticket sample = {
    .visitor = "alice-0123456789",
    .generation = UINT64_C(0x1122334455667788),
    .place = ((tl_place)3 << TL_PLACE_SEQ_BITS) | 123456789,
    .issued = 1795000000,
};

static void test_round_trip(void **state)
{
    (void)state;
    struct tl_keyring *keyring = good_keyring(key_a);
    for (size_t length = 1; length <= TL_VISITOR_MAX; length++) {
        struct tl_ticket ticket = sample;
        memset(ticket.visitor, 'v', length);
        ticket.visitor[length] = '\0';
        char text[TL_TICKET_MAX];
        tl_ticket_sign(keyring, "concert", &ticket, text);
        assert_in_range(strlen(text), 63, 147);
        assert_int_equal(
            strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
            strlen(text));
        struct tl_ticket read = {0};
        assert_true(tl_ticket_verify(keyring, "concert", text, strlen(text), &read));
        assert_string_equal(read.visitor, ticket.visitor);
        assert_int_equal(read.generation, ticket.generation);
        assert_int_equal(read.place, ticket.place);
        assert_int_equal(read.issued, ticket.issued / 60 * 60 % TL_TICKET_ISSUED_MODULO);
        assert_int_equal(read.front, 0);
    }
    tl_keyring_free(&keyring);
    assert_null(keyring);
}

/* What a ticket says of the front of its lane, after a round trip. */
static uint64_t front_told(const struct tl_keyring *keyring, uint64_t seq, uint64_t front)
{
    struct tl_ticket ticket = sample;
    struct tl_ticket read = {0};
    char text[TL_TICKET_MAX];
    ticket.place = tl_place_make(15, seq);
    ticket.front = front;
    tl_ticket_sign(keyring, "q", &ticket, text);
    assert_true(tl_ticket_verify(keyring, "q", text, strlen(text), &read));
    assert_int_equal(read.place, ticket.place);
    return read.front;
}

static void test_a_ticket_tells_the_front_and_never_too_much(void **state)
{
    (void)state;
    struct tl_keyring *keyring = good_keyring(key_a);
    const uint64_t seq = UINT64_C(31000000000000);
    assert_int_equal(front_told(keyring, seq, 0), 0);
    assert_int_equal(front_told(keyring, seq, seq), seq);     /* this place was called */
    assert_int_equal(front_told(keyring, seq, seq + 5), seq); /* of its own place it knows enough */
    for (uint64_t distance = 1; distance < 2048; distance++)
        assert_int_equal(front_told(keyring, seq, seq - distance), seq - distance);
    for (uint64_t distance = 2048; distance < UINT64_C(1) << 41; distance += distance / 3 + 1) {
        uint64_t told = front_told(keyring, seq, seq - distance);
        assert_in_range(told, seq - distance - distance / 1000, seq - distance);
    }
    assert_int_equal(front_told(keyring, TL_PLACE_SEQ_MAX, 1), 0); /* too far to say */
    assert_int_equal(front_told(keyring, 7, 1), 1);
    tl_keyring_free(&keyring);
}

static void test_a_pending_ticket_tells_its_second(void **state)
{
    (void)state;
    struct tl_keyring *keyring = good_keyring(key_a);
    struct tl_ticket ticket = sample;
    struct tl_ticket read = {0};
    char text[TL_TICKET_MAX];
    ticket.place = tl_place_make(3, 0);
    ticket.generation = 0;
    ticket.invite = UINT64_C(0xFEDCBA9876543210);
    tl_ticket_sign(keyring, "q", &ticket, text);
    assert_true(tl_ticket_verify(keyring, "q", text, strlen(text), &read));
    assert_int_equal(read.issued, sample.issued);
    assert_int_equal(read.front, 0);
    tl_keyring_free(&keyring);
}

/* A ticket of a place that was handed over, and the code that does it: neither is the other. */
static void test_serials_and_codes(void **state)
{
    (void)state;
    struct tl_keyring *keyring = good_keyring(key_a);
    struct tl_ticket ticket = sample;
    struct tl_ticket read = {0};
    char text[TL_TICKET_MAX], code[TL_TICKET_MAX];
    memset(ticket.visitor, 'v', TL_VISITOR_MAX);
    ticket.visitor[TL_VISITOR_MAX] = '\0';
    ticket.serial = UINT32_MAX;
    ticket.front = 1;
    tl_ticket_sign(keyring, "q", &ticket, text);
    assert_int_equal(strlen(text), 147);
    assert_true(tl_ticket_verify(keyring, "q", text, strlen(text), &read));
    assert_int_equal(read.serial, UINT32_MAX);
    assert_string_equal(read.visitor, ticket.visitor);
    assert_false(tl_ticket_verify_code(keyring, "q", text, strlen(text), &read));
    tl_ticket_sign_code(keyring, "q", &ticket, code);
    assert_true(tl_ticket_verify_code(keyring, "q", code, strlen(code), &read));
    assert_int_equal(read.serial, UINT32_MAX);
    assert_int_equal(read.issued, sample.issued);
    assert_int_equal(read.place, sample.place);
    assert_int_equal(read.generation, sample.generation);
    assert_false(tl_ticket_verify(keyring, "q", code, strlen(code), &read));
    assert_false(tl_ticket_verify_code(keyring, "other", code, strlen(code), &read));
    for (size_t i = 0; i < strlen(code); i++) {
        char before = code[i];
        code[i] = before == 'A' ? 'B' : 'A';
        assert_false(tl_ticket_verify_code(keyring, "q", code, strlen(code), &read));
        code[i] = before;
    }
    ticket.serial = 0; /* nothing was handed over: no code */
    tl_ticket_sign_code(keyring, "q", &ticket, code);
    assert_false(tl_ticket_verify_code(keyring, "q", code, strlen(code), &read));
    tl_keyring_free(&keyring);
}

/* The format must not change: issued tickets depend on it. The value is from Python:
 * hashlib.blake2b with digest_size=16. */
static void test_known_bytes(void **state)
{
    (void)state;
    struct tl_keyring *keyring = good_keyring(key_a);
    struct tl_ticket ticket = sample;
    char text[TL_TICKET_MAX];
    ticket.front = tl_place_seq(sample.place) - 5000;
    tl_ticket_sign(keyring, "concert", &ticket, text);
    assert_string_equal(text, "AQAAAAoRIjNEVWZ3iAADAAAHW80VffoU4gAAAAAQYWxpY2UtMDEy"
                              "MzQ1Njc4Of8V28yPvrCmuLUMDV5vLVw");
    tl_keyring_free(&keyring);
}

static void test_every_change_is_refused(void **state)
{
    (void)state;
    struct tl_keyring *keyring = good_keyring(key_a);
    char text[TL_TICKET_MAX];
    struct tl_ticket read;
    tl_ticket_sign(keyring, "concert", &sample, text);
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        char changed[TL_TICKET_MAX];
        memcpy(changed, text, sizeof(changed));
        for (int c = 0; c < 256; c++) {
            changed[i] = (char)c;
            if (changed[i] != text[i])
                assert_false(tl_ticket_verify(keyring, "concert", changed, length, &read));
        }
        assert_false(tl_ticket_verify(keyring, "concert", text, i, &read));
    }
    char longer[TL_TICKET_MAX * 2];
    snprintf(longer, sizeof(longer), "%sA", text);
    assert_false(tl_ticket_verify(keyring, "concert", longer, length + 1, &read));
    snprintf(longer, sizeof(longer), "%s%s", text, text);
    assert_false(tl_ticket_verify(keyring, "concert", longer, 2 * length, &read));
    assert_false(tl_ticket_verify(keyring, "concert", "", 0, &read));
    tl_keyring_free(&keyring);
}

static void test_other_queue_is_refused(void **state)
{
    (void)state;
    struct tl_keyring *keyring = good_keyring(key_a);
    char text[TL_TICKET_MAX];
    struct tl_ticket read;
    tl_ticket_sign(keyring, "concert", &sample, text);
    assert_false(tl_ticket_verify(keyring, "concert2", text, strlen(text), &read));
    assert_false(tl_ticket_verify(keyring, "concer", text, strlen(text), &read));
    assert_false(tl_ticket_verify(keyring, "", text, strlen(text), &read));
    tl_keyring_free(&keyring);
}

static void test_rotation(void **state)
{
    (void)state;
    char both[256], text_a[TL_TICKET_MAX], text_b[TL_TICKET_MAX];
    struct tl_ticket read;
    struct tl_keyring *old = good_keyring(key_a);
    tl_ticket_sign(old, "q", &sample, text_a);

    snprintf(both, sizeof(both), "# new key first\n\n  %s%s", key_b, key_a);
    struct tl_keyring *rotated = good_keyring(both);
    assert_true(tl_ticket_verify(rotated, "q", text_a, strlen(text_a), &read));
    tl_ticket_sign(rotated, "q", &sample, text_b);
    assert_true(tl_ticket_verify(rotated, "q", text_b, strlen(text_b), &read));
    assert_false(tl_ticket_verify(old, "q", text_b, strlen(text_b), &read));

    struct tl_keyring *new = good_keyring(key_b);
    assert_false(tl_ticket_verify(new, "q", text_a, strlen(text_a), &read));
    assert_true(tl_ticket_verify(new, "q", text_b, strlen(text_b), &read));
    tl_keyring_free(&old);
    tl_keyring_free(&rotated);
    tl_keyring_free(&new);
}

static void test_fingerprint(void **state)
{
    (void)state;
    char both[512];
    snprintf(both, sizeof(both), "%s%s", key_a, key_b);
    struct tl_keyring *a = good_keyring(key_a);
    struct tl_keyring *b = good_keyring(key_b);
    struct tl_keyring *first_a = good_keyring(both);
    assert_int_not_equal(tl_keyring_fingerprint(a), tl_keyring_fingerprint(b));
    assert_int_equal(tl_keyring_fingerprint(a), tl_keyring_fingerprint(first_a));
    tl_keyring_free(&a);
    tl_keyring_free(&b);
    tl_keyring_free(&first_a);
}

static void test_bad_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *complaint;
    } cases[] = {
        {"", "holds no key"},
        {"# only words\n", "holds no key"},
        {"0000000a\n", ":1: expected"},
        {"\n0000000a 0011\n", ":2: expected"},
        {"0000000g 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n",
         ":1: expected"},
        {"0000000a00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n",
         ":1: expected"},
        {"0000000a 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff00\n",
         ":1: expected"},
        {"0000000a 00112233445566778899aabbccddeeff00112233445566778899aabbccddee:f\n",
         ":1: expected"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_error err = {0};
        assert_null(keyring_of(cases[i].text, &err));
        assert_int_equal(err.kind, TL_ERR_INVALID);
        assert_non_null(strstr(err.text, cases[i].complaint));
        assert_null(strstr(err.text, "remove")); /* advice that makes every ticket worthless */
    }
    char twice[256];
    struct tl_error err = {0};
    snprintf(twice, sizeof(twice), "%s%s", key_a, key_a);
    assert_null(keyring_of(twice, &err));
    assert_non_null(strstr(err.text, "given twice"));
    assert_null(strstr(err.text, "00112233445566778899")); /* never the key itself */
}

static void test_file_of_others_is_refused(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        bool accepted;
    } cases[] = {{0600, true},  {0400, true},  {0640, true},
                 {0644, false}, {0604, false}, {0660, false}};
    struct tl_keyring *keyring = good_keyring(key_a);
    tl_keyring_free(&keyring);
    const char *path = path_of("given.keys");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(chmod(path, cases[i].mode), 0);
        keyring = tl_keyring_load(path, false, NULL);
        assert_int_equal(keyring != NULL, cases[i].accepted);
        tl_keyring_free(&keyring);
    }
    assert_null(tl_keyring_load(folder, false, NULL));
    assert_null(tl_keyring_load(path_of("absent.keys"), false, NULL));
}

/* Many processes start at once on an empty folder: all must end up with the same key. */
static void test_creation_race(void **state)
{
    (void)state;
    enum { PROCESSES = 8 };
    const char *path = path_of("deep.d/made.keys");
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char text[TL_TICKET_MAX] = "";
            struct tl_keyring *keyring = tl_keyring_load(path, true, NULL);
            if (keyring != NULL)
                tl_ticket_sign(keyring, "q", &sample, text);
            tl_keyring_free(&keyring);
            _exit(write(ends[1], text, sizeof(text)) != (ssize_t)sizeof(text));
        }
    }
    char first[TL_TICKET_MAX] = "", text[TL_TICKET_MAX];
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(read(ends[0], text, sizeof(text)), sizeof(text));
        if (i == 0)
            memcpy(first, text, sizeof(first));
        assert_string_not_equal(text, "");
        assert_string_equal(text, first);
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    close(ends[0]);
    close(ends[1]);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
}

static void test_random_visitors(void **state)
{
    (void)state;
    enum { MANY = 100 }; /* more than are drawn at once */
    static struct tl_visitor_ids ids;
    char visitors[MANY][TL_VISITOR_MAX + 1];
    for (size_t i = 0; i < MANY; i++) {
        tl_visitor_random(&ids, visitors[i]);
        assert_int_equal(strlen(visitors[i]), 22);
        assert_true(tl_visitor_valid(visitors[i], strlen(visitors[i])));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(visitors[i], visitors[k]);
    }
}

static void test_keyed_visitors(void **state)
{
    (void)state;
    static const struct tl_keyring ring = {.n = 1, .keys = {{.id = 1, .bytes = {1}}}},
                                   other = {.n = 1, .keys = {{.id = 2, .bytes = {2}}}};
    /* Each differs from the one before it in one thing, or in where one thing ends. */
    const struct {
        const struct tl_keyring *ring;
        const char *queue, *sender, *key;
    } cases[] = {{&ring, "concert", "from 192.0.2.1", "k1"},
                 {&ring, "concert", "from 192.0.2.1", "k2"},
                 {&ring, "concert", "from 192.0.2.", "1k2"},
                 {&ring, "concer", "tfrom 192.0.2.", "1k2"},
                 {&other, "concer", "tfrom 192.0.2.", "1k2"}};
    enum { N = sizeof(cases) / sizeof(cases[0]) };
    char visitors[N][TL_VISITOR_MAX + 1], again[TL_VISITOR_MAX + 1];
    for (size_t i = 0; i < N; i++) {
        tl_visitor_keyed(cases[i].ring, cases[i].queue, cases[i].sender, cases[i].key, visitors[i]);
        tl_visitor_keyed(cases[i].ring, cases[i].queue, cases[i].sender, cases[i].key, again);
        assert_string_equal(visitors[i], again);
        assert_int_equal(strlen(visitors[i]), 22);
        assert_true(tl_visitor_valid(visitors[i], strlen(visitors[i])));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(visitors[i], visitors[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_a_ticket_tells_the_front_and_never_too_much),
        cmocka_unit_test(test_a_pending_ticket_tells_its_second),
        cmocka_unit_test(test_serials_and_codes),
        cmocka_unit_test(test_known_bytes),
        cmocka_unit_test(test_every_change_is_refused),
        cmocka_unit_test(test_other_queue_is_refused),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_bad_files_are_refused),
        cmocka_unit_test(test_file_of_others_is_refused),
        cmocka_unit_test(test_creation_race),
        cmocka_unit_test(test_random_visitors),
        cmocka_unit_test(test_keyed_visitors),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Passes: the keys they are signed with, what they hold, and every way in which one is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/auth/jwt_keys.h"
#include "common/auth/pass.h"
#include "common/auth/secret_file.h"
#include "common/wire/names.h"
#include "tests/unit/auth/jwt_forge.h"
#include "tests/unit/auth/run_program.h"

#define ISSUER "https://wait.example"
#define NOW    INT64_C(1795000000)

static const struct tl_pass sample = {.visitor = "alice-42",
                                      .id = "adm-1",
                                      .issued = NOW,
                                      .expires = NOW + 600,
                                      .generation = UINT64_C(1795000000000001),
                                      .place = ((tl_place)1 << TL_PLACE_SEQ_BITS) + 77,
                                      .event = UINT64_C(31000000000002)};

static const char both_keys[] =
    "a HS256 " FORGE_SECRET_A "\nb HS256 " FORGE_SECRET_B "\ne ES256\n" FORGE_EC_PRIVATE;

static struct tl_jwt_keys *keys_with(enum tl_jwt_algorithm algorithm)
{
    struct tl_jwt_keys *keys = forge_keys(both_keys, TL_JWT_SIGN);
    assert_non_null(keys);
    assert_true(tl_jwt_keys_choose_signer(keys, algorithm));
    return keys;
}

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/tl-pass-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return run_program("rm", "-rf", folder, NULL);
}

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void check_made_file(const char *name, enum tl_jwt_algorithm algorithm)
{
    struct tl_error err = {0};
    struct stat info;
    char pass[TL_PASS_MAX];
    struct tl_pass read;
    struct tl_jwt_keys *keys = tl_pass_keys_load(path_of(name), algorithm, true, &err);
    if (keys == NULL)
        fail_msg("%s", err.text);
    assert_int_equal(stat(path_of(name), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_true(tl_pass_sign(keys, ISSUER, "concert", &sample, pass, &err));
    tl_jwt_keys_free(&keys);

    /* The second process finds the same key. */
    keys = tl_pass_keys_load(path_of(name), algorithm, true, &err);
    assert_non_null(keys);
    assert_true(tl_pass_verify(keys, ISSUER, "concert", pass, strlen(pass), NOW, &read, &err));
    tl_jwt_keys_free(&keys);
}

static void test_key_file_is_made(void **state)
{
    (void)state;
    struct tl_error err = {0};
    assert_null(tl_pass_keys_load(path_of("new/hs.keys"), TL_JWT_HS256, false, &err));
    assert_int_equal(err.kind, TL_ERR_SYSTEM);
    check_made_file("new/hs.keys", TL_JWT_HS256);
    check_made_file("es.keys", TL_JWT_ES256);
    assert_null(tl_pass_keys_load(path_of("es.keys"), TL_JWT_HS256, true, &err));
    assert_non_null(strstr(err.text, "holds no HS256 key to sign passes with"));
}

/* Read again and again, by keys that remember it: what it says is the same each time, but its times
 * are judged again each time, and it is for no other issuer or queue. */
static void test_a_pass_is_remembered(void **state)
{
    (void)state;
    struct tl_error err = {0};
    char text[TL_PASS_MAX];
    struct tl_jwt_keys *keys =
        tl_pass_keys_load(path_of("remembers.keys"), TL_JWT_HS256, true, &err);
    assert_non_null(keys);
    assert_non_null(keys->passes);
    assert_true(tl_pass_sign(keys, ISSUER, "concert", &sample, text, &err));
    const size_t length = strlen(text);
    for (int i = 0; i < 3; i++) {
        struct tl_pass read = {0};
        assert_true(tl_pass_verify(keys, ISSUER, "concert", text, length, NOW, &read, &err));
        assert_string_equal(read.visitor, sample.visitor);
        assert_string_equal(read.id, sample.id);
        assert_int_equal(read.issued, sample.issued);
        assert_int_equal(read.expires, sample.expires);
        assert_int_equal(read.generation, sample.generation);
        assert_int_equal(read.place, sample.place);
        assert_int_equal(read.event, sample.event);
        assert_false(tl_pass_verify(keys, ISSUER, "concert", text, length,
                                    sample.expires + TL_JWT_LEEWAY_S, &read, &err));
        assert_non_null(strstr(err.text, "has expired"));
        assert_false(tl_pass_verify(keys, ISSUER, "concert", text, length,
                                    sample.issued - TL_JWT_LEEWAY_S - 1, &read, &err));
        assert_non_null(strstr(err.text, "issued in the future"));
        assert_false(tl_pass_verify(keys, ISSUER, "other", text, length, NOW, &read, &err));
        assert_false(
            tl_pass_verify(keys, ISSUER ".not", "concert", text, length, NOW, &read, &err));
        text[length - 5] ^= 1;
        assert_false(tl_pass_verify(keys, ISSUER, "concert", text, length, NOW, &read, &err));
        text[length - 5] ^= 1;
    }
    tl_jwt_keys_free(&keys);
}

static void test_open_file_is_refused(void **state)
{
    (void)state;
    struct tl_error err = {0};
    const char *path = path_of("open.keys");
    assert_true(tl_secret_create(path, both_keys, strlen(both_keys), "keys", &err));
    assert_int_equal(chmod(path, 0644), 0);
    assert_null(tl_pass_keys_load(path, TL_JWT_HS256, true, &err));
    assert_non_null(strstr(err.text, "gives others access to a secret"));
}

static json_t *part_of(const char *token, int number)
{
    char bytes[TL_PASS_MAX];
    size_t length = 0;
    for (int i = 0; i < number; i++)
        token = strchr(token, '.') + 1;
    assert_int_equal(sodium_base642bin((unsigned char *)bytes, sizeof(bytes), token,
                                       strcspn(token, "."), NULL, &length, NULL,
                                       sodium_base64_VARIANT_URLSAFE_NO_PADDING),
                     0);
    json_t *object = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    return object;
}

static void check_json(json_t *found, json_t *expected)
{
    assert_non_null(expected);
    char *text = json_dumps(found, JSON_SORT_KEYS);
    if (!json_equal(found, expected))
        fail_msg("%s", text);
    free(text);
    json_decref(found);
    json_decref(expected);
}

static void check_round_trip(enum tl_jwt_algorithm algorithm, const char *kid)
{
    struct tl_error err = {0};
    char text[TL_PASS_MAX];
    struct tl_pass read;
    struct tl_jwt_keys *keys = keys_with(algorithm);
    assert_true(tl_pass_sign(keys, ISSUER, "concert", &sample, text, &err));
    check_json(part_of(text, 0), json_pack("{s:s, s:s, s:s}", "typ", "JWT", "alg",
                                           tl_jwt_algorithm_name(algorithm), "kid", kid));
    check_json(part_of(text, 1),
               json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "iss", ISSUER, "aud",
                         "concert", "sub", "alice-42", "jti", "adm-1", "iat", (json_int_t)NOW,
                         "exp", (json_int_t)NOW + 600, "gen", (json_int_t)sample.generation,
                         "place", (json_int_t)sample.place, "evt", (json_int_t)sample.event));
    assert_true(tl_pass_verify(keys, ISSUER, "concert", text, strlen(text), NOW, &read, &err));
    assert_string_equal(read.visitor, sample.visitor);
    assert_string_equal(read.id, sample.id);
    assert_int_equal(read.issued, sample.issued);
    assert_int_equal(read.expires, sample.expires);
    assert_int_equal(read.generation, sample.generation);
    assert_int_equal(read.place, sample.place);
    assert_int_equal(read.event, sample.event);
    tl_jwt_keys_free(&keys);
}

static void test_round_trip(void **state)
{
    (void)state;
    check_round_trip(TL_JWT_HS256, "a");
    check_round_trip(TL_JWT_ES256, "e");
}

/* The longest that can be signed still fits and verifies. */
static void test_longest(void **state)
{
    (void)state;
    struct tl_error err = {0};
    struct tl_pass pass = {.issued = NOW,
                           .expires = INT64_C(253402300799),
                           .generation = (UINT64_C(1) << 53) - 1,
                           .place = TL_PLACE_MAX,
                           .event = (UINT64_C(1) << 53) - 1};
    struct tl_pass read;
    char issuer[TL_PASS_ISSUER_MAX + 2];
    char queue[TL_QUEUE_NAME_MAX + 1];
    char text[TL_PASS_MAX];
    memset(issuer, '"', sizeof(issuer)); /* which JSON doubles */
    issuer[TL_PASS_ISSUER_MAX] = '\0';
    memset(queue, 'q', sizeof(queue));
    queue[TL_QUEUE_NAME_MAX] = '\0';
    memset(pass.visitor, '\\', TL_VISITOR_MAX);
    memset(pass.id, '"', TL_PASS_ID_MAX);
    char kid[TL_JWT_KEY_ID_MAX + 1] = {0};
    char file[TL_JWT_KEY_ID_MAX + 512];
    memset(kid, 'k', TL_JWT_KEY_ID_MAX);
    snprintf(file, sizeof(file), "%s ES256\n%s", kid, FORGE_EC_PRIVATE);
    struct tl_jwt_keys *keys = forge_keys(file, TL_JWT_SIGN);
    assert_non_null(keys);
    assert_true(tl_jwt_keys_choose_signer(keys, TL_JWT_ES256));
    assert_true(tl_pass_sign(keys, issuer, queue, &pass, text, &err));
    assert_true(tl_pass_verify(keys, issuer, queue, text, strlen(text), NOW, &read, &err));
    assert_string_equal(read.visitor, pass.visitor);
    assert_string_equal(read.id, pass.id);

    issuer[TL_PASS_ISSUER_MAX] = 'x';
    issuer[TL_PASS_ISSUER_MAX + 1] = '\0';
    assert_false(tl_pass_sign(keys, issuer, queue, &pass, text, &err));
    tl_jwt_keys_free(&keys);
}

static void test_unsignable(void **state)
{
    (void)state;
    struct tl_error err = {0};
    char text[TL_PASS_MAX];
    struct tl_jwt_keys *keys = keys_with(TL_JWT_HS256);
    struct tl_pass pass = sample;
    assert_false(tl_pass_sign(keys, "", "concert", &pass, text, &err));
    assert_false(tl_pass_sign(keys, "caf\xc3\xa9", "concert", &pass, text, &err));
    assert_false(tl_pass_sign(keys, ISSUER, "Not a queue", &pass, text, &err));
    pass.expires = pass.issued - 1;
    assert_false(tl_pass_sign(keys, ISSUER, "concert", &pass, text, &err));
    pass.expires = INT64_C(253402300800);
    assert_false(tl_pass_sign(keys, ISSUER, "concert", &pass, text, &err));
    pass = sample;
    pass.id[0] = '\0';
    assert_false(tl_pass_sign(keys, ISSUER, "concert", &pass, text, &err));
    pass = sample;
    pass.visitor[1] = ' ';
    assert_false(tl_pass_sign(keys, ISSUER, "concert", &pass, text, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    tl_jwt_keys_free(&keys);
}

/* A key change without a gap: at every stage, processes that have reloaded and processes that have
 * not accept each other's passes. */
static void test_rotation(void **state)
{
    (void)state;
#define KEY_A "a HS256 " FORGE_SECRET_A "\n"
#define KEY_E "e ES256\n" FORGE_EC_PRIVATE
    static const struct {
        const char *file;
        enum tl_jwt_algorithm algorithm;
    } stages[] = {{KEY_A, TL_JWT_HS256},
                  {KEY_A KEY_E, TL_JWT_HS256},
                  {KEY_A KEY_E, TL_JWT_ES256},
                  {KEY_E, TL_JWT_ES256}};
    struct tl_error err = {0};
    struct tl_jwt_keys *keys[4];
    char text[TL_PASS_MAX];
    struct tl_pass read;
    for (size_t i = 0; i < 4; i++) {
        keys[i] = forge_keys(stages[i].file, TL_JWT_SIGN);
        assert_non_null(keys[i]);
        assert_true(tl_jwt_keys_choose_signer(keys[i], stages[i].algorithm));
    }
    for (size_t i = 0; i < 4; i++) {
        assert_true(tl_pass_sign(keys[i], ISSUER, "q", &sample, text, &err));
        for (size_t k = i == 0 ? 0 : i - 1; k < 4 && k <= i + 1; k++)
            assert_true(tl_pass_verify(keys[k], ISSUER, "q", text, strlen(text), NOW, &read, &err));
    }
    assert_false(tl_pass_verify(keys[0], ISSUER, "q", text, strlen(text), NOW, &read, &err));
    assert_string_equal(err.text, "the pass names a key (kid) that is not known here");
    for (size_t i = 0; i < 4; i++)
        tl_jwt_keys_free(&keys[i]);
}

/* ---- refusals ---- */

#define HEADER_A  "{\"typ\":\"JWT\",\"alg\":\"HS256\",\"kid\":\"a\"}"
#define CLAIMS(x) "{\"iss\":\"" ISSUER "\",\"jti\":\"1\",\"gen\":1,\"place\":2,\"evt\":3," x "}"
#define AUD       "\"aud\":\"concert\""
#define SUB       "\"sub\":\"alice\""
#define IAT       "\"iat\":1795000000"
#define EXP       "\"exp\":1795000600"
#define GOOD      CLAIMS(AUD "," SUB "," IAT "," EXP)

struct forgery {
    const char *header, *claims;
    const char *message; /* NULL: accepted */
};

static const struct forgery forgeries[] = {
    {HEADER_A, GOOD, NULL},
    {"{\"alg\":\"HS256\",\"kid\":\"a\"}", GOOD, NULL},
    {"{\"alg\":\"HS256\",\"kid\":\"a\",\"jku\":\"https://evil.example\",\"jwk\":{}}", GOOD, NULL},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT "," EXP ",\"nbf\":1795000030,\"more\":[1]"), NULL},
    /* header */
    {"{\"alg\":\"none\",\"kid\":\"a\"}", GOOD, "names an algorithm (alg)"},
    {"{\"alg\":\"None\",\"kid\":\"a\"}", GOOD, "names an algorithm (alg)"},
    {"{\"alg\":\"hs256\",\"kid\":\"a\"}", GOOD, "names an algorithm (alg)"},
    {"{\"alg\":\"HS512\",\"kid\":\"a\"}", GOOD, "names an algorithm (alg)"},
    {"{\"alg\":\"ES256\",\"kid\":\"a\"}", GOOD, "names an algorithm (alg)"},
    {"{\"alg\":\"RS256\",\"kid\":\"e\"}", GOOD, "names an algorithm (alg)"},
    {"{\"alg\":\"HS256\",\"kid\":\"e\"}", GOOD, "names an algorithm (alg)"},
    {"{\"alg\":[\"HS256\"],\"kid\":\"a\"}", GOOD, "names an algorithm (alg)"},
    {"{\"kid\":\"a\"}", GOOD, "names an algorithm (alg)"},
    {"{\"alg\":\"HS256\",\"kid\":\"b\"}", GOOD, "is not genuine"},
    {"{\"alg\":\"ES256\",\"kid\":\"e\"}", GOOD, "is not genuine"},
    {"{\"alg\":\"HS256\"}", GOOD, "the header kid is missing"},
    {"{\"alg\":\"HS256\",\"kid\":7}", GOOD, "the header kid is missing"},
    {"{\"alg\":\"HS256\",\"kid\":\"\"}", GOOD, "names a key (kid) that is not known"},
    {"{\"alg\":\"HS256\",\"kid\":\"A\"}", GOOD, "names a key (kid) that is not known"},
    {"{\"alg\":\"HS256\",\"kid\":\"../../../dev/null\"}", GOOD, "names a key (kid)"},
    {"{\"alg\":\"HS256\",\"kid\":\"' or 1=1 --\"}", GOOD, "names a key (kid)"},
    {"{\"alg\":\"HS256\",\"kid\":\"a\\u0000b\"}", GOOD, "has a header that is not"},
    {"{\"alg\":\"HS256\",\"kid\":\"a\",\"crit\":[\"exp\"]}", GOOD, "has a crit header"},
    {"{\"alg\":\"HS256\",\"kid\":\"a\",\"crit\":null}", GOOD, "has a crit header"},
    {"{\"alg\":\"HS256\",\"kid\":\"a\",\"typ\":\"at+jwt\"}", GOOD, "is of another type"},
    {"{\"alg\":\"HS256\",\"kid\":\"a\",\"typ\":null}", GOOD, "is of another type"},
    {"{\"alg\":\"none\",\"alg\":\"HS256\",\"kid\":\"a\"}", GOOD, "has a header that is not"},
    {"{\"alg\":\"HS256\",\"kid\":\"b\",\"kid\":\"a\"}", GOOD, "has a header that is not"},
    {"[]", GOOD, "has a header that is not"},
    {"{} {}", GOOD, "has a header that is not"},
    /* claims */
    {HEADER_A, "[]", "holds no claims"},
    {HEADER_A, "\"text\"", "holds no claims"},
    {HEADER_A, "{", "holds no claims"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT "," EXP "," EXP), "holds no claims"},
    {HEADER_A, CLAIMS(AUD ",\"aud\":\"x\"," SUB "," IAT "," EXP), "holds no claims"},
    {HEADER_A, "{}", "comes from another issuer"},
    {HEADER_A, "{\"iss\":\"https://wait.example/\"}", "comes from another issuer"},
    {HEADER_A, "{\"iss\":[\"" ISSUER "\"]}", "comes from another issuer"},
    {HEADER_A, CLAIMS(SUB "," IAT "," EXP), "is for another queue"},
    {HEADER_A, CLAIMS("\"aud\":\"concert-2\"," SUB "," IAT "," EXP), "is for another queue"},
    {HEADER_A, CLAIMS("\"aud\":[\"concert\"]," SUB "," IAT "," EXP), "is for another queue"},
    {HEADER_A, CLAIMS(AUD "," IAT "," EXP), "names no visitor"},
    {HEADER_A, CLAIMS(AUD ",\"sub\":\"\"," IAT "," EXP), "names no visitor"},
    {HEADER_A, CLAIMS(AUD ",\"sub\":\"a b\"," IAT "," EXP), "names no visitor"},
    {HEADER_A, CLAIMS(AUD ",\"sub\":\"a\\r\\nb\"," IAT "," EXP), "names no visitor"},
    {HEADER_A, CLAIMS(AUD ",\"sub\":7," IAT "," EXP), "names no visitor"},
    {HEADER_A, "{\"iss\":\"" ISSUER "\"," AUD "," SUB "," IAT "," EXP "}", "has no id"},
    {HEADER_A, "{\"iss\":\"" ISSUER "\",\"jti\":\"\"," AUD "," SUB "," IAT "," EXP "}",
     "has no id"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT), "has no end"},
    {HEADER_A, CLAIMS(AUD "," SUB "," EXP), "does not say when it was issued"},
    {HEADER_A,
     "{\"iss\":\"" ISSUER "\",\"jti\":\"1\",\"gen\":1,\"place\":2," AUD "," SUB "," IAT "," EXP "}",
     "does not say what place"},
    {HEADER_A,
     "{\"iss\":\"" ISSUER "\",\"jti\":\"1\",\"gen\":1,\"place\":\"2\",\"evt\":3," AUD "," SUB
     "," IAT "," EXP "}",
     "does not say what place"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT ",\"exp\":null"), "has a time that is not"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT ",\"exp\":\"1795000600\""), "has a time that is not"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT ",\"exp\":1795000600.5"), "has a time that is not"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT ",\"exp\":0"), "has a time that is not"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT ",\"exp\":-1"), "has a time that is not"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT ",\"exp\":9223372036854775807"),
     "has a time that is not"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT ",\"exp\":9223372036854775808"), "holds no claims"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT ",\"exp\":1794999970"), "has expired"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT ",\"exp\":1794999971"), NULL},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT "," EXP ",\"nbf\":1795000031"), "is not valid yet"},
    {HEADER_A, CLAIMS(AUD "," SUB "," IAT "," EXP ",\"nbf\":\"soon\""), "has a time that is not"},
    {HEADER_A, CLAIMS(AUD "," SUB ",\"iat\":1795000030," EXP), NULL},
    {HEADER_A, CLAIMS(AUD "," SUB ",\"iat\":1795000031," EXP), "was issued in the future"},
};

static bool verify(const struct tl_jwt_keys *keys, const char *text, size_t length,
                   struct tl_error *err)
{
    struct tl_pass read;
    return tl_pass_verify(keys, ISSUER, "concert", text, length, NOW, &read, err);
}

static void expect_refusal(const struct tl_jwt_keys *keys, const char *text, const char *message)
{
    struct tl_error err = {0};
    if (verify(keys, text, strlen(text), &err))
        fail_msg("accepted: %s", text);
    assert_int_equal(err.kind, TL_ERR_INVALID);
    if (strstr(err.text, message) == NULL)
        fail_msg("\"%s\", not \"%s\"", err.text, message);
}

static void test_forgeries(void **state)
{
    (void)state;
    struct tl_jwt_keys *keys = keys_with(TL_JWT_HS256);
    for (size_t i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
        const struct forgery *forgery = &forgeries[i];
        char text[FORGE_TEXT];
        struct tl_error err = {0};
        forge(forgery->header, forgery->claims, text);
        if (forgery->message != NULL)
            expect_refusal(keys, text, forgery->message);
        else if (!verify(keys, text, strlen(text), &err))
            fail_msg("case %zu: %s", i, err.text);
    }
    tl_jwt_keys_free(&keys);
}

/* The public key of ES256 used as an HS256 secret (RFC 8725, 2.1), and other invalid signatures. */
static void test_confused_signatures(void **state)
{
    (void)state;
    static const char es[] = "{\"alg\":\"ES256\",\"kid\":\"e\"}";
    static const char hs_of_e[] = "{\"alg\":\"HS256\",\"kid\":\"e\"}";
    static const char none[] = "{\"alg\":\"none\",\"kid\":\"e\"}";
    struct tl_jwt_keys *keys = keys_with(TL_JWT_ES256);
    char text[FORGE_TEXT];
    forge_signed(hs_of_e, GOOD, FORGE_EC_PUBLIC, strlen(FORGE_EC_PUBLIC), text);
    expect_refusal(keys, text, "names an algorithm (alg)");
    forge_signed(es, GOOD, FORGE_EC_PUBLIC, strlen(FORGE_EC_PUBLIC), text);
    expect_refusal(keys, text, "is not genuine");
    forge_signed(HEADER_A, GOOD, "", 0, text);
    expect_refusal(keys, text, "is not genuine");
    forge_unsigned(none, GOOD, text);
    size_t used = strlen(text);
    text[used] = '.';
    text[used + 1] = '\0';
    expect_refusal(keys, text, "is not a JSON Web Token");
    forge_unsigned(es, GOOD, text);
    expect_refusal(keys, text, "is not a JSON Web Token");
    used = strlen(text);
    /* r = s = 0, which a careless verifier accepts (CVE-2022-21449). */
    snprintf(text + used, sizeof(text) - used, ".%086d", 0);
    memset(text + used + 1, 'A', 86);
    expect_refusal(keys, text, "is not genuine");
    tl_jwt_keys_free(&keys);
}

static void test_not_a_token(void **state)
{
    (void)state;
    struct tl_jwt_keys *keys = keys_with(TL_JWT_HS256);
    static const char *const texts[] = {"",     ".",    "..",      "a.b",    "a.b.c.d", ".b.c",
                                        "a..c", "a.b.", "a b.c.d", "a=.b.c", "\xff.b.c"};
    struct tl_error err = {0};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        expect_refusal(keys, texts[i], "the pass ");

    char *huge = malloc(1 << 20);
    assert_non_null(huge);
    memset(huge, 'A', 1 << 20);
    assert_false(verify(keys, huge, 1 << 20, &err));
    assert_string_equal(err.text, "the pass is longer than 2048 characters");
    assert_false(verify(keys, huge, 2048, &err));
    assert_string_equal(err.text,
                        "the pass is not a JSON Web Token: expected three parts with dots between");
    free(huge);

    char text[FORGE_TEXT];
    forge(HEADER_A, GOOD, text);
    size_t length = strlen(text);
    text[length + 1] = 'x';
    assert_true(verify(keys, text, length, &err));
    assert_false(verify(keys, text, length + 1, &err)); /* a zero byte belongs to no token */
    tl_jwt_keys_free(&keys);
}

/* A JSON bomb: nesting as deep as a token has room for. */
static void test_deep_nesting(void **state)
{
    (void)state;
    enum { DEPTH = 600 };
    struct tl_jwt_keys *keys = keys_with(TL_JWT_HS256);
    struct tl_error err = {0};
    char nested[2 * DEPTH + 1] = {0};
    char claims[2 * DEPTH + 256];
    char text[FORGE_TEXT];
    memset(nested, '[', DEPTH);
    memset(nested + DEPTH, ']', DEPTH);
    snprintf(claims, sizeof(claims), CLAIMS(AUD "," SUB "," IAT "," EXP ",\"deep\":%s"), nested);
    forge(HEADER_A, claims, text);
    assert_true(strlen(text) <= 2048);
    if (!verify(keys, text, strlen(text), &err))
        fail_msg("%s", err.text);
    tl_jwt_keys_free(&keys);
}

/* Every character of a pass counts: none can be changed, added or left off. */
static void check_every_character(enum tl_jwt_algorithm algorithm)
{
    struct tl_error err = {0};
    char text[TL_PASS_MAX + 1];
    struct tl_jwt_keys *keys = keys_with(algorithm);
    assert_true(tl_pass_sign(keys, ISSUER, "concert", &sample, text, &err));
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        char was = text[i];
        static const char others[] = "AB_.=+ ";
        for (size_t k = 0; k < sizeof(others); k++) {
            text[i] = others[k];
            if (was != others[k] && verify(keys, text, length, &err))
                fail_msg("character %zu: '%c' passes for '%c'", i, others[k], was);
        }
        text[i] = was;
        assert_false(verify(keys, text, i, &err));
    }
    static const char tails[] = "A.= ";
    for (size_t k = 0; k < sizeof(tails); k++) {
        text[length] = tails[k];
        assert_false(verify(keys, text, length + 1, &err));
    }
    tl_jwt_keys_free(&keys);
}

static void test_every_character_counts(void **state)
{
    (void)state;
    check_every_character(TL_JWT_HS256);
    check_every_character(TL_JWT_ES256);
}

static void test_expiry_and_place(void **state)
{
    (void)state;
    struct tl_error err = {0};
    char text[TL_PASS_MAX];
    struct tl_pass read;
    struct tl_jwt_keys *keys = keys_with(TL_JWT_ES256);
    assert_true(tl_pass_sign(keys, ISSUER, "concert", &sample, text, &err));
    size_t length = strlen(text);
    assert_true(tl_pass_verify(keys, ISSUER, "concert", text, length, NOW + 629, &read, &err));
    assert_false(tl_pass_verify(keys, ISSUER, "concert", text, length, NOW + 630, &read, &err));
    assert_string_equal(err.text, "the pass has expired (exp)");
    assert_false(tl_pass_verify(keys, ISSUER, "concert", text, length, NOW - 31, &read, &err));
    assert_false(tl_pass_verify(keys, ISSUER, "other", text, length, NOW, &read, &err));
    assert_false(
        tl_pass_verify(keys, "https://other.example", "concert", text, length, NOW, &read, &err));
    tl_jwt_keys_free(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_file_is_made),
        cmocka_unit_test(test_open_file_is_refused),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_longest),
        cmocka_unit_test(test_unsignable),
        cmocka_unit_test(test_a_pass_is_remembered),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_forgeries),
        cmocka_unit_test(test_confused_signatures),
        cmocka_unit_test(test_not_a_token),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_every_character_counts),
        cmocka_unit_test(test_expiry_and_place),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

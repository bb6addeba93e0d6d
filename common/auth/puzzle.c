/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/puzzle.h"
#include "common/base/big_endian.h"

enum {
    KIND_AT = 0,
    KEY_AT = 1,
    ISSUED_AT = 5,
    AMOUNT_AT = 9,
    NONCE_AT = 10,
    NONCE_BYTES = 8,
    MAC_AT = 18,
    MAC_BYTES = 16,
    BYTES = 34,
    NUMBER_BYTES = 4,
    NUMBERS_BYTES = TL_PUZZLE_PARTS * NUMBER_BYTES,
    TEXT_LENGTH = 46,
    NUMBERS_LENGTH = 86,
    AHEAD_S = 60, /* how far another worker's idea of the store's clock may be ahead */
    BASE64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING,
};

_Static_assert(sodium_base64_ENCODED_LEN(BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING) ==
                   TEXT_LENGTH + 1,
               "the length of a puzzle's text");
_Static_assert(sodium_base64_ENCODED_LEN(NUMBERS_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING) ==
                   NUMBERS_LENGTH + 1,
               "the length of the numbers' text");
_Static_assert(TEXT_LENGTH < TL_PUZZLE_MAX &&
                   TEXT_LENGTH + 1 + NUMBERS_LENGTH < TL_PUZZLE_SOLUTION_MAX,
               "both texts fit");

static void make_mac(const struct tl_signing_key *key, const struct tl_puzzle_scope *scope,
                     const unsigned char bytes[BYTES], unsigned char mac[MAC_BYTES])
{
    static const unsigned char purpose[crypto_generichash_blake2b_PERSONALBYTES] = "tl puzzle";
    crypto_generichash_blake2b_state state;
    /* Fails only for lengths out of bounds; these constants are within them. */
    (void)crypto_generichash_blake2b_init_salt_personal(&state, key->bytes, sizeof(key->bytes),
                                                        MAC_BYTES, NULL, purpose);
    (void)crypto_generichash_blake2b_update(&state, (const unsigned char *)scope->queue,
                                            strlen(scope->queue) + 1);
    (void)crypto_generichash_blake2b_update(&state, (const unsigned char *)scope->prefix,
                                            sizeof(*scope->prefix)); /* without padding */
    (void)crypto_generichash_blake2b_update(&state, bytes, MAC_AT);
    (void)crypto_generichash_blake2b_final(&state, mac, MAC_BYTES);
}

void tl_puzzle_make(const struct tl_keyring *keyring, const struct tl_puzzle_scope *scope,
                    enum tl_puzzle_kind kind, unsigned amount, int64_t now_s,
                    char text[TL_PUZZLE_MAX])
{
    const struct tl_signing_key *key = &keyring->keys[0];
    unsigned char bytes[BYTES];
    bytes[KIND_AT] = (unsigned char)kind;
    tl_put_be(bytes + KEY_AT, key->id, 4);
    tl_put_be(bytes + ISSUED_AT, (uint64_t)now_s, 4);
    bytes[AMOUNT_AT] = (unsigned char)amount;
    randombytes_buf(bytes + NONCE_AT, NONCE_BYTES);
    make_mac(key, scope, bytes, bytes + MAC_AT);
    sodium_bin2base64(text, TL_PUZZLE_MAX, bytes, BYTES, BASE64);
}

/* Exactly n bytes from the text. */
static bool decode(const char *text, size_t length, unsigned char *bytes, size_t n)
{
    size_t written = 0;
    const char *end = NULL;
    return sodium_base642bin(bytes, n, text, length, NULL, &written, &end, BASE64) == 0 &&
           written == n && end == text + length;
}

static bool part_solved(const unsigned char bytes[BYTES], unsigned part,
                        const unsigned char number[NUMBER_BYTES])
{
    unsigned char message[BYTES + 1 + NUMBER_BYTES];
    unsigned char hash[crypto_hash_sha256_BYTES];
    memcpy(message, bytes, BYTES);
    message[BYTES] = (unsigned char)part;
    memcpy(message + BYTES + 1, number, NUMBER_BYTES);
    (void)crypto_hash_sha256(hash, message, sizeof(message)); /* never fails */
    return tl_get_be(hash, 4) >> (32 - bytes[AMOUNT_AT]) == 0;
}

static enum tl_puzzle_result check_work(const unsigned char bytes[BYTES], const char *text,
                                        size_t length)
{
    unsigned char numbers[NUMBERS_BYTES];
    if (length != 1 + NUMBERS_LENGTH || text[0] != '.' ||
        !decode(text + 1, NUMBERS_LENGTH, numbers, sizeof(numbers)))
        return TL_PUZZLE_FORGED;
    for (unsigned i = 0; i < TL_PUZZLE_PARTS; i++)
        if (!part_solved(bytes, i, numbers + (size_t)i * NUMBER_BYTES))
            return TL_PUZZLE_WRONG;
    return TL_PUZZLE_SOLVED;
}

/* Is it one of our puzzles, for this queue and this prefix? */
static bool is_genuine(const struct tl_keyring *keyring, const struct tl_puzzle_scope *scope,
                       const unsigned char bytes[BYTES])
{
    unsigned char mac[MAC_BYTES];
    const struct tl_signing_key *key =
        tl_keyring_find(keyring, (uint32_t)tl_get_be(bytes + KEY_AT, 4));
    if (key == NULL)
        return false;
    make_mac(key, scope, bytes, mac);
    return sodium_memcmp(mac, bytes + MAC_AT, MAC_BYTES) == 0;
}

enum tl_puzzle_result tl_puzzle_check(const struct tl_keyring *keyring,
                                      const struct tl_puzzle_scope *scope, const char *text,
                                      size_t length, int64_t now_s, struct tl_puzzle_solved *solved)
{
    unsigned char bytes[BYTES];
    if (length < TEXT_LENGTH || !decode(text, TEXT_LENGTH, bytes, sizeof(bytes)) ||
        !is_genuine(keyring, scope, bytes))
        return TL_PUZZLE_FORGED;
    int64_t issued = (int64_t)tl_get_be(bytes + ISSUED_AT, 4);
    if (now_s > issued + TL_PUZZLE_LIFETIME_S || now_s < issued - AHEAD_S)
        return TL_PUZZLE_EXPIRED;
    enum tl_puzzle_result result;
    if (bytes[KIND_AT] == TL_PUZZLE_WORK)
        result = check_work(bytes, text + TEXT_LENGTH, length - TEXT_LENGTH);
    else if (length != TEXT_LENGTH)
        result = TL_PUZZLE_FORGED;
    else
        result = now_s < issued + bytes[AMOUNT_AT] ? TL_PUZZLE_EARLY : TL_PUZZLE_SOLVED;
    if (result != TL_PUZZLE_SOLVED)
        return result;
    solved->kind = (enum tl_puzzle_kind)bytes[KIND_AT];
    solved->id[0] = '~';
    sodium_bin2base64(solved->id + 1, sizeof(solved->id) - 1, bytes + MAC_AT, MAC_BYTES, BASE64);
    solved->kept_until = issued + TL_PUZZLE_LIFETIME_S + 2 * AHEAD_S;
    return TL_PUZZLE_SOLVED;
}

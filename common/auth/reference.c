#include <string.h>

#include <sodium.h>

#include "common/auth/reference.h"

enum {
    ROUNDS = 10,
    HALF_BITS = TL_REFERENCE_BITS / 2,
    HALF_MASK = (1 << HALF_BITS) - 1,
    DIGIT_BITS = 5,
    DIGITS = TL_REFERENCE_BITS / DIGIT_BITS,
};

_Static_assert(DIGITS + 1 < TL_REFERENCE_MAX, "digits, a hyphen and a NUL fit");
_Static_assert(TL_REFERENCE_KEY_BYTES == crypto_shorthash_KEYBYTES, "what libsodium expects");

static const char digit_names[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* What the rounds of one code share. */
struct rounds {
    const unsigned char *key;
    unsigned char queue[crypto_shorthash_BYTES]; /* a hash of its name */
};

static struct rounds rounds_of(const struct tl_signing_key *key, const char *queue)
{
    struct rounds rounds = {.key = key->reference};
    (void)crypto_shorthash(rounds.queue, (const unsigned char *)queue, strlen(queue),
                           rounds.key); /* always 0 */
    return rounds;
}

/* The round function; big endian, so that the code is the same on every machine. */
static uint32_t mix(const struct rounds *rounds, unsigned round, uint32_t half)
{
    unsigned char bytes[sizeof(rounds->queue) + 4];
    unsigned char *numbers = bytes + sizeof(rounds->queue);
    unsigned char hash[crypto_shorthash_BYTES];
    memcpy(bytes, rounds->queue, sizeof(rounds->queue));
    numbers[0] = (unsigned char)round;
    numbers[1] = (unsigned char)(half >> 16);
    numbers[2] = (unsigned char)(half >> 8);
    numbers[3] = (unsigned char)half;
    (void)crypto_shorthash(hash, bytes, sizeof(bytes), rounds->key);
    return ((uint32_t)hash[0] << 16 | (uint32_t)hash[1] << 8 | hash[2]) & HALF_MASK;
}

static uint64_t permute(const struct tl_signing_key *key, const char *queue, uint64_t value)
{
    const struct rounds rounds = rounds_of(key, queue);
    uint32_t left = (uint32_t)(value >> HALF_BITS) & HALF_MASK;
    uint32_t right = (uint32_t)value & HALF_MASK;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t next = left ^ mix(&rounds, round, right);
        left = right;
        right = next;
    }
    return (uint64_t)left << HALF_BITS | right;
}

static uint64_t permute_back(const struct tl_signing_key *key, const char *queue, uint64_t value)
{
    const struct rounds rounds = rounds_of(key, queue);
    uint32_t left = (uint32_t)(value >> HALF_BITS) & HALF_MASK;
    uint32_t right = (uint32_t)value & HALF_MASK;
    for (unsigned round = ROUNDS; round > 0; round--) {
        uint32_t before = right ^ mix(&rounds, round - 1, left);
        right = left;
        left = before;
    }
    return (uint64_t)left << HALF_BITS | right;
}

void tl_reference_write(const struct tl_keyring *keyring, const char *queue, uint64_t seq,
                        char text[TL_REFERENCE_MAX])
{
    uint64_t code = permute(tl_keyring_first(keyring), queue, seq);
    size_t n = 0;
    for (int i = DIGITS - 1; i >= 0; i--) {
        text[n++] = digit_names[code >> (i * DIGIT_BITS) & 31];
        if (i == DIGITS / 2)
            text[n++] = '-';
    }
    text[n] = '\0';
}

/* The value of a character; -1: it is no digit. */
static int digit_of(char c)
{
    if (c >= 'a' && c <= 'z')
        c = (char)(c - 'a' + 'A');
    if (c == 'O')
        c = '0';
    if (c == 'I' || c == 'L')
        c = '1';
    const char *at = c != '\0' ? strchr(digit_names, c) : NULL;
    return at != NULL ? (int)(at - digit_names) : -1;
}

size_t tl_reference_read(const struct tl_keyring *keyring, const char *queue, const char *text,
                         uint64_t seqs[TL_KEYRING_MAX])
{
    uint64_t code = 0;
    unsigned digits = 0;
    for (; *text != '\0'; text++) {
        if (*text == '-' || *text == ' ')
            continue;
        int digit = digit_of(*text);
        if (digit < 0 || ++digits > DIGITS)
            return 0;
        code = code << DIGIT_BITS | (uint64_t)digit;
    }
    if (digits != DIGITS)
        return 0;
    size_t n = tl_keyring_count(keyring);
    for (size_t i = 0; i < n; i++)
        seqs[i] = permute_back(tl_keyring_at(keyring, i), queue, code);
    return n;
}

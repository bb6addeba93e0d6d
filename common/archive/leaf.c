/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/archive/leaf.h"
#include "common/auth/base64.h"

enum { WHO_BYTES = 16, FIELDS = 7 };
#define NUMBER_LIMIT (UINT64_C(1) << 53)

_Static_assert(TL_BASE64_LENGTH(WHO_BYTES) + 1 == TL_LEAF_WHO_SIZE, "who");

static const char *const kinds[] = {
    [TL_NOTE_ENTERED] = "entered", [TL_NOTE_RESTORED] = "restored", [TL_NOTE_LANE] = "lane",
    [TL_NOTE_DRAWN] = "drawn",     [TL_NOTE_ADMITTED] = "admitted", [TL_NOTE_ENDED] = "ended",
    [TL_NOTE_BEGINS] = "begins",   [TL_NOTE_WAITS] = "waits",       [TL_NOTE_STAYS] = "stays",
    [TL_NOTE_ALL] = "all",         [TL_NOTE_DELETED] = "deleted",   [TL_NOTE_RULES] = "rules"};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static const char *const reasons[] = {
    [TL_REASON_COMPLETED] = "completed", [TL_REASON_LEFT] = "left",
    [TL_REASON_EXPIRED] = "expired",     [TL_REASON_UNCLAIMED] = "unclaimed",
    [TL_REASON_ABSENT] = "absent",       [TL_REASON_REMOVED] = "removed"};

const char *tl_leaf_kind_name(enum tl_record_note kind)
{
    return (size_t)kind < KINDS ? kinds[kind] : NULL;
}

const char *tl_leaf_reason_name(enum tl_reason reason)
{
    return reason >= TL_REASON_COMPLETED && reason <= TL_REASON_REMOVED ? reasons[reason]
                                                                        : "unknown";
}

const char *tl_leaf_gap_name(uint64_t why)
{
    static const char *const names[] = {
        [TL_GAP_OPENED] = "opened",   [TL_GAP_BACKLOG] = "backlog",
        [TL_GAP_STORE] = "store",     [TL_GAP_CORRECTED] = "corrected",
        [TL_GAP_DAMAGED] = "damaged", [TL_GAP_ARCHIVE] = "archive"};
    return why >= TL_GAP_OPENED && why <= TL_GAP_ARCHIVE ? names[why] : "unknown";
}

size_t tl_leaf_write(const struct tl_leaf *leaf, char line[TL_LEAF_MAX + 1])
{
    char place[48] = "- -";
    if (leaf->place != 0)
        snprintf(place, sizeof(place), "%u %" PRIu64, tl_place_lane(leaf->place),
                 tl_place_seq(leaf->place));
    return (size_t)snprintf(line, TL_LEAF_MAX + 1, "%" PRIu64 " %" PRId64 " %s %s %s %s",
                            leaf->event, leaf->ms, kinds[leaf->kind], place,
                            leaf->who[0] != '\0' ? leaf->who : "-",
                            leaf->detail[0] != '\0' ? leaf->detail : "-");
}

/* ---- reading ---- */

/* A whole number without signs and leading zeros, up to the end of the text. */
static bool number(const char *text, uint64_t limit, uint64_t *value)
{
    *value = 0;
    if (*text == '\0' || (text[0] == '0' && text[1] != '\0'))
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || *value > limit / 10)
            return false;
        *value = *value * 10 + (unsigned char)(*text - '0');
    }
    return *value <= limit;
}

static bool place_of(const char *lane_text, const char *seq_text, tl_place *place)
{
    uint64_t lane, seq;
    if (!number(lane_text, TL_LANES_MAX - 1, &lane) || !number(seq_text, TL_PLACE_SEQ_MAX, &seq))
        return false;
    *place = tl_place_make((unsigned)lane, seq);
    return seq > 0;
}

static bool read_who(const char *text, char who[TL_LEAF_WHO_SIZE])
{
    unsigned char bytes[WHO_BYTES];
    size_t n = 0;
    if (!tl_base64_decode(text, strlen(text), bytes, sizeof(bytes), &n) || n != WHO_BYTES)
        return false;
    snprintf(who, TL_LEAF_WHO_SIZE, "%s", text);
    return true;
}

tl_place tl_leaf_held(const struct tl_leaf *leaf, char who[TL_LEAF_WHO_SIZE])
{
    char copy[TL_LEAF_DETAIL_MAX + 1], *rest = copy;
    tl_place place;
    bool is_drawn = leaf->kind == TL_NOTE_DRAWN;
    memcpy(who, leaf->who, TL_LEAF_WHO_SIZE);
    if (!is_drawn && leaf->kind != TL_NOTE_LANE)
        return leaf->place;
    memcpy(copy, leaf->detail, sizeof(copy));
    const char *lane = strsep(&rest, ":"), *seq = strsep(&rest, ":");
    if (seq == NULL || !place_of(lane, seq, &place) || is_drawn != (rest != NULL) ||
        (is_drawn && !read_who(rest, who)))
        return 0;
    return place;
}

static bool is_nothing(const char *text)
{
    return strcmp(text, "-") == 0;
}

/* Splits the copy of a line at its spaces. False: not into all fields. */
static bool split(char *copy, const char *fields[FIELDS])
{
    char *rest = copy;
    for (size_t i = 0; i < FIELDS; i++) {
        fields[i] = strsep(&rest, " ");
        if (fields[i] == NULL || *fields[i] == '\0')
            return false;
    }
    return rest == NULL;
}

static enum tl_record_note kind_of(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i] != NULL && strcmp(kinds[i], name) == 0)
            return (enum tl_record_note)i;
    return 0;
}

bool tl_leaf_read(const char *line, size_t length, struct tl_leaf *leaf, struct tl_error *err)
{
    char copy[TL_LEAF_MAX + 1];
    const char *fields[FIELDS];
    uint64_t ms;
    *leaf = (struct tl_leaf){0};
    if (length > TL_LEAF_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "it has %zu characters", length);
    for (size_t i = 0; i < length; i++)
        if (line[i] < ' ' || line[i] > '~')
            return tl_error_set(err, TL_ERR_INVALID, "it is no printable ASCII");
    memcpy(copy, line, length);
    copy[length] = '\0';
    if (!split(copy, fields))
        return tl_error_set(err, TL_ERR_INVALID, "it is not %d words", FIELDS);
    leaf->kind = kind_of(fields[2]);
    bool ok = number(fields[0], NUMBER_LIMIT, &leaf->event) &&
              number(fields[1], NUMBER_LIMIT, &ms) && leaf->kind != 0;
    leaf->ms = ok ? (int64_t)ms : 0;
    if (!is_nothing(fields[3]) || !is_nothing(fields[4]))
        ok = ok && place_of(fields[3], fields[4], &leaf->place);
    if (!is_nothing(fields[5]))
        ok = ok && read_who(fields[5], leaf->who);
    ok = ok && strlen(fields[6]) <= TL_LEAF_DETAIL_MAX;
    if (ok && !is_nothing(fields[6]))
        snprintf(leaf->detail, sizeof(leaf->detail), "%s", fields[6]);
    return ok || tl_error_set(err, TL_ERR_INVALID, "its words are not those of a leaf");
}

/* ---- who ---- */

void tl_leaf_salt(const unsigned char key[32], uint64_t generation, uint64_t seq,
                  unsigned char salt[TL_LEAF_SALT_BYTES])
{
    unsigned char mac[crypto_auth_hmacsha256_BYTES];
    char text[48];
    int length = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, generation, seq);
    crypto_auth_hmacsha256(mac, (const unsigned char *)text, (unsigned long long)length, key);
    memcpy(salt, mac, TL_LEAF_SALT_BYTES);
}

void tl_leaf_who(const unsigned char salt[TL_LEAF_SALT_BYTES], const char *visitor, size_t length,
                 char who[TL_LEAF_WHO_SIZE])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, salt, TL_LEAF_SALT_BYTES);
    crypto_hash_sha256_update(&state, (const unsigned char *)visitor, length);
    crypto_hash_sha256_final(&state, hash);
    tl_base64_encode(hash, WHO_BYTES, who);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/auth/base64.h"
#include "common/auth/jwt.h"
#include "common/wire/names.h"

/* ---- compact form ---- */

struct part {
    const char *text;
    size_t length;
};

static bool split(const char *text, size_t length, struct part parts[3])
{
    const char *end = text + length;
    for (int i = 0; i < 3; i++) {
        const char *dot = i < 2 ? memchr(text, '.', (size_t)(end - text)) : end;
        if (dot == NULL || dot == text)
            return false;
        parts[i] = (struct part){.text = text, .length = (size_t)(dot - text)};
        text = dot + 1;
    }
    return memchr(parts[2].text, '.', parts[2].length) == NULL;
}

static json_t *decode_object(struct part part)
{
    char bytes[TL_JWT_TEXT_MAX];
    size_t length = 0;
    if (!tl_base64_decode(part.text, part.length, (unsigned char *)bytes, sizeof(bytes), &length))
        return NULL;
    json_t *object = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* ---- header and signature ---- */

/* A token being checked: its text (NUL-terminated), the keys and what is expected of it, and where
 * a refusal is reported. */
struct check {
    const struct tl_jwt_keys *keys;
    const struct tl_jwt_expect *expect;
    const char *text;
    size_t length;
    struct tl_error *err;
};

static bool refuse(const struct check *check, const char *reason)
{
    return tl_error_set(check->err, TL_ERR_INVALID, "the %s %s", check->expect->what, reason);
}

static const struct tl_jwt_key *choose_key(const struct check *check, const json_t *header)
{
    const json_t *id = json_object_get(header, "kid");
    const json_t *typ = json_object_get(header, "typ");
    const char *algorithm = json_string_value(json_object_get(header, "alg"));
    const struct tl_jwt_key *key = NULL;
    if (json_object_get(header, "crit") != NULL)
        refuse(check, "has a crit header: extensions are not supported");
    else if (typ != NULL && (!json_is_string(typ) || strcmp(json_string_value(typ), "JWT") != 0))
        refuse(check, "is of another type: the header typ must be JWT");
    else if (!json_is_string(id))
        refuse(check, "does not say which key signed it: the header kid is missing");
    else if ((key = tl_jwt_keys_find(check->keys, json_string_value(id), json_string_length(id))) ==
             NULL)
        refuse(check, "names a key (kid) that is not known here");
    else if (algorithm == NULL || strcmp(algorithm, tl_jwt_algorithm_name(key->algorithm)) != 0) {
        refuse(check, "names an algorithm (alg) other than that of its key");
        key = NULL;
    }
    return key;
}

static bool check_signature(const struct check *check, const struct tl_jwt_key *key,
                            struct part signature)
{
    unsigned char raw[TL_JWT_SIGNATURE_MAX];
    size_t raw_length = 0;
    size_t length = (size_t)(signature.text - check->text) - 1; /* without the dot */
    if (!tl_base64_decode(signature.text, signature.length, raw, sizeof(raw), &raw_length) ||
        !tl_jwt_key_verify(key, check->text, length, raw, raw_length))
        return refuse(check, "is not genuine: its signature is not that of its key");
    tl_genuine_add(check->keys->genuine, check->text, check->length);
    return true;
}

static bool take_parts(const struct check *check, struct part parts[3])
{
    if (split(check->text, check->length, parts))
        return true;
    refuse(check, "is not a JSON Web Token: expected three parts with dots between");
    return false;
}

/* The key that the header names; NULL: it is refused. */
static const struct tl_jwt_key *find_key(const struct check *check, struct part text)
{
    json_t *header = decode_object(text);
    if (header == NULL)
        refuse(check, "has a header that is not a JSON object in base64url");
    const struct tl_jwt_key *key = header != NULL ? choose_key(check, header) : NULL;
    json_decref(header);
    return key;
}

/* The claims of a token whose signature is right. One that was found genuine before has the header
 * it had then, so only its claims are read. */
static json_t *verify(const struct check *check)
{
    struct part parts[3];
    const struct tl_jwt_key *key = NULL;
    const bool known = tl_genuine_has(check->keys->genuine, check->text, check->length);
    if (!take_parts(check, parts) || (!known && (key = find_key(check, parts[0])) == NULL))
        return NULL;
    json_t *claims = decode_object(parts[1]);
    if (claims == NULL)
        refuse(check, "holds no claims: expected one JSON object in base64url, no name twice");
    else if (!known && !check_signature(check, key, parts[2])) {
        json_decref(claims);
        claims = NULL;
    }
    return claims;
}

/* ---- claims ---- */

static bool is_text(const json_t *value, const char *expected)
{
    return json_is_string(value) && strcmp(json_string_value(value), expected) == 0;
}

_Static_assert(TL_JWT_ID_MAX == TL_VISITOR_MAX, "one rule for both");

static bool take_text(const json_t *value, char text[TL_VISITOR_MAX + 1])
{
    if (!json_is_string(value) ||
        !tl_visitor_valid(json_string_value(value), json_string_length(value)))
        return false;
    memcpy(text, json_string_value(value), json_string_length(value) + 1);
    return true;
}

/* Whole seconds between 1 and the year 9999. Absent counts as 0 and is fine. */
static bool take_time(const json_t *claims, const char *name, int64_t *seconds)
{
    const json_t *value = json_object_get(claims, name);
    *seconds = json_integer_value(value);
    return value == NULL || (json_is_integer(value) && *seconds > 0 && *seconds <= TL_JWT_TIME_MAX);
}

static bool check_claims(const struct check *check, struct tl_jwt_token *token)
{
    const struct tl_jwt_expect *expect = check->expect;
    struct tl_jwt_times *times = &token->times;
    const json_t *claims = token->claims;
    if (expect->issuer != NULL && !is_text(json_object_get(claims, "iss"), expect->issuer))
        return refuse(check, "comes from another issuer: iss is not the one expected");
    if (!is_text(json_object_get(claims, "aud"), expect->audience))
        return refuse(check, "is for another queue: aud must be this queue's name");
    if (!take_text(json_object_get(claims, "sub"), token->subject))
        return refuse(check,
                      "names no visitor: sub must be 1 to 64 printable ASCII characters, no space");
    if (!take_text(json_object_get(claims, "jti"), token->id))
        return refuse(check, "has no id: jti must be 1 to 64 printable ASCII characters, no space");
    if (!take_time(claims, "exp", &times->expires) ||
        !take_time(claims, "nbf", &times->not_before) || !take_time(claims, "iat", &times->issued))
        return refuse(check, "has a time that is not a whole number of Unix seconds");
    if (times->expires == 0)
        return refuse(check, "has no end: exp is missing");
    return tl_jwt_in_time(expect, times, check->err);
}

bool tl_jwt_in_time(const struct tl_jwt_expect *expect, const struct tl_jwt_times *times,
                    struct tl_error *err)
{
    const struct check check = {.expect = expect, .err = err};
    if (expect->now >= times->expires + TL_JWT_LEEWAY_S)
        return refuse(&check, "has expired (exp)");
    if (times->not_before > expect->now + TL_JWT_LEEWAY_S)
        return refuse(&check, "is not valid yet (nbf)");
    if (times->issued > expect->now + TL_JWT_LEEWAY_S)
        return refuse(&check, "was issued in the future (iat): compare the clocks");
    return true;
}

bool tl_jwt_read(const struct tl_jwt_keys *keys, const struct tl_jwt_expect *expect,
                 const char *text, size_t length, struct tl_jwt_token *token, struct tl_error *err)
{
    char copy[TL_JWT_TEXT_MAX + 1];
    const struct check check = {
        .keys = keys, .expect = expect, .text = copy, .length = length, .err = err};
    memset(token, 0, sizeof(*token));
    if (length > TL_JWT_TEXT_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "the %s is longer than %d characters",
                            expect->what, TL_JWT_TEXT_MAX);
    memcpy(copy, text, length);
    copy[length] = '\0';
    token->claims = verify(&check);
    if (token->claims == NULL)
        return false;
    if (check_claims(&check, token))
        return true;
    json_decref(token->claims);
    token->claims = NULL;
    return false;
}

bool tl_jwt_is_costly(const struct tl_jwt_keys *keys, const char *text, size_t length)
{
    static const struct tl_jwt_expect unsaid = {.what = "token"};
    const struct check check = {.keys = keys, .expect = &unsaid, .text = text, .length = length};
    struct part parts[3];
    if (length > TL_JWT_TEXT_MAX || tl_genuine_has(keys->genuine, text, length))
        return false;
    const struct tl_jwt_key *key = take_parts(&check, parts) ? find_key(&check, parts[0]) : NULL;
    return key != NULL && key->algorithm == TL_JWT_ES256;
}

/* ---- writing ---- */

/* Appends the bytes as base64url, behind a dot unless they are the first. False when they do not
 * fit. */
static bool append(const unsigned char *bytes, size_t length, char text[TL_JWT_SIZE], size_t *used)
{
    size_t dot = *used > 0 ? 1 : 0;
    size_t size = dot + TL_BASE64_LENGTH(length) + 1;
    if (size > TL_JWT_SIZE - *used)
        return false;
    text[*used] = '.';
    tl_base64_encode(bytes, length, text + *used + dot);
    *used += size - 1;
    return true;
}

/* Ends the object and appends it, without the newline at its end. */
static bool append_json(struct tl_json *object, char text[TL_JWT_SIZE], size_t *used)
{
    const size_t length = tl_json_end(object);
    return length > 0 && append((const unsigned char *)object->text, length - 1, text, used);
}

bool tl_jwt_write(const struct tl_jwt_key *key, const char *what, struct tl_json *claims,
                  char text[TL_JWT_SIZE], struct tl_error *err)
{
    char bytes[TL_JWT_KEY_ID_MAX + 64];
    struct tl_json header;
    unsigned char signature[TL_JWT_SIGNATURE_MAX];
    size_t used = 0;
    size_t length = 0;
    tl_json_begin(&header, bytes, sizeof(bytes));
    tl_json_string(&header, "typ", "JWT");
    tl_json_string(&header, "alg", tl_jwt_algorithm_name(key->algorithm));
    tl_json_string(&header, "kid", key->id);
    bool fits = append_json(&header, text, &used) && append_json(claims, text, &used);
    if (fits && (length = tl_jwt_key_sign(key, text, used, signature)) == 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "the %s cannot be signed with key %s", what,
                            key->id);
    return (fits && append(signature, length, text, &used)) ||
           tl_error_set(err, TL_ERR_INVALID, "the %s is longer than %d characters", what,
                        TL_JWT_SIZE - 1);
}

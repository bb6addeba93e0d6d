/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/control/target.h"

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes in place. */
static bool decode(char *text, bool plus_is_space)
{
    char *out = text;
    for (const char *in = text; *in != '\0'; in++) {
        char c = plus_is_space && *in == '+' ? ' ' : *in;
        if (*in == '%') {
            int high = digit(in[1]);
            int low = high >= 0 ? digit(in[2]) : -1;
            if (low < 0 || (high == 0 && low == 0))
                return false;
            c = (char)(high * 16 + low);
            in += 2;
        }
        *out++ = c;
    }
    *out = '\0';
    return true;
}

static bool split_path(struct tl_target *target, char *path)
{
    if (*path != '/')
        return false;
    for (char *next = path; next != NULL;) {
        char *segment = next + 1;
        next = strchr(segment, '/');
        if (next != NULL)
            *next = '\0';
        if (target->n_segments == TL_TARGET_SEGMENTS || !decode(segment, false))
            return false;
        target->segments[target->n_segments++] = segment;
    }
    return true;
}

static bool split_query(struct tl_target *target, char *query)
{
    for (char *next = query; next != NULL && *next != '\0';) {
        char *name = next;
        next = strchr(name, '&');
        if (next != NULL)
            *next++ = '\0';
        char *value = strchr(name, '=');
        if (value != NULL)
            *value++ = '\0';
        else
            value = name + strlen(name);
        if (target->n_parameters == TL_TARGET_PARAMETERS || !decode(name, true) ||
            !decode(value, true) || tl_target_parameter(target, name) != NULL)
            return false;
        target->parameters[target->n_parameters].name = name;
        target->parameters[target->n_parameters++].value = value;
    }
    return true;
}

bool tl_target_parse(const char *text, struct tl_target *target, struct tl_error *err)
{
    size_t length = strlen(text);
    *target = (struct tl_target){0};
    if (length >= sizeof(target->bytes))
        return tl_error_set(err, TL_ERR_INVALID, "the address has %zu bytes; the limit is %zu",
                            length, sizeof(target->bytes) - 1);
    memcpy(target->bytes, text, length + 1);
    char *query = strchr(target->bytes, '?');
    if (query != NULL)
        *query++ = '\0';
    target->has_path = split_path(target, target->bytes);
    if (!target->has_path)
        return tl_error_set(err, TL_ERR_INVALID, "the path is not well formed");
    return split_query(target, query) ||
           tl_error_set(err, TL_ERR_INVALID,
                        "the query is not well formed: each parameter once, NAME=VALUE");
}

/* The i-th segment of a pattern. */
static const char *pattern_segment(const char *pattern, size_t i, size_t *length)
{
    const char *at = pattern;
    for (size_t k = 0; at != NULL && k <= i; k++) {
        if (k > 0)
            at = strchr(at, '/');
        if (at != NULL)
            at++;
    }
    *length = at != NULL ? strcspn(at, "/") : 0;
    return at;
}

bool tl_target_matches(const struct tl_target *target, const char *pattern)
{
    size_t length;
    for (size_t i = 0; i < target->n_segments; i++) {
        const char *part = pattern_segment(pattern, i, &length);
        const char *segment = target->segments[i];
        if (part == NULL)
            return false;
        if (part[0] == '{' ? *segment == '\0'
                           : strlen(segment) != length || memcmp(segment, part, length) != 0)
            return false;
    }
    return pattern_segment(pattern, target->n_segments, &length) == NULL;
}

const char *tl_target_part(const struct tl_target *target, const char *pattern, const char *name)
{
    size_t length;
    for (size_t i = 0; i < target->n_segments; i++) {
        const char *part = pattern_segment(pattern, i, &length);
        if (part != NULL && part[0] == '{' && length == strlen(name) + 2 &&
            memcmp(part + 1, name, length - 2) == 0)
            return target->segments[i];
    }
    return NULL;
}

const char *tl_target_parameter(const struct tl_target *target, const char *name)
{
    for (size_t i = 0; i < target->n_parameters; i++)
        if (strcmp(target->parameters[i].name, name) == 0)
            return target->parameters[i].value;
    return NULL;
}

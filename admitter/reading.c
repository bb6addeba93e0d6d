/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "admitter/reading.h"

enum { NUMBER_MAX = 64 };

/* ---- JSON ---- */

/* The member of an object by its name, or the item of an array by its index. */
static const json_t *child(const json_t *parent, const char *name, size_t length)
{
    char *end;
    if (json_is_object(parent))
        return json_object_getn(parent, name, length);
    if (!json_is_array(parent) || *name < '0' || *name > '9')
        return NULL;
    unsigned long index = strtoul(name, &end, 10);
    return end == name + length ? json_array_get(parent, index) : NULL;
}

static bool take_json(const char *text, size_t length, const char *path, double *number,
                      struct tl_error *err)
{
    json_error_t problem;
    json_t *root = json_loadb(text, length, 0, &problem);
    if (root == NULL)
        return tl_error_set(err, TL_ERR_PROTOCOL, "the answer is not JSON: line %d, column %d",
                            problem.line, problem.column);
    const json_t *node = root;
    for (const char *name = path; node != NULL && name != NULL;) {
        size_t n = strcspn(name, ".");
        node = child(node, name, n);
        name = name[n] == '.' ? name + n + 1 : NULL;
    }
    bool found = json_is_number(node);
    if (found)
        *number = json_number_value(node);
    json_decref(root);
    return found || tl_error_set(err, TL_ERR_PROTOCOL, "the answer has no number at \"%s\"", path);
}

/* ---- the text format of Prometheus ---- */

/* Where the series ends: behind its labels, whose quoted values may hold anything. */
static const char *series_end(const char *line, const char *end)
{
    const char *at = line;
    bool labels = false, quoted = false;
    for (; at < end; at++) {
        if (quoted && *at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            quoted = labels && !quoted;
        else if (!quoted && *at == '{')
            labels = true;
        else if (!quoted && *at == '}')
            return at + 1;
        else if (!labels && (*at == ' ' || *at == '\t'))
            return at;
    }
    return at;
}

/* Is the sample of this series, or of this metric, whatever its labels? */
static bool is_wanted(const char *line, const char *end, const char *wanted)
{
    size_t length = (size_t)(end - line);
    if (strchr(wanted, '{') == NULL) {
        const char *brace = memchr(line, '{', length);
        length = brace != NULL ? (size_t)(brace - line) : length;
    }
    return strlen(wanted) == length && memcmp(line, wanted, length) == 0;
}

/* The value behind a series; a time stamp may follow. */
static bool sample_value(const char *at, const char *end, double *value)
{
    char copy[NUMBER_MAX];
    char *stop;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    size_t length = 0;
    while (at + length < end && at[length] != ' ' && at[length] != '\t' && at[length] != '\r')
        length++;
    if (length == 0 || length >= sizeof(copy))
        return false;
    memcpy(copy, at, length);
    copy[length] = '\0';
    *value = strtod(copy, &stop);
    return *stop == '\0';
}

static bool take_prometheus(const char *text, size_t length, const char *wanted, double *number,
                            struct tl_error *err)
{
    const char *end = text + length;
    bool found = false;
    double sum = 0;
    for (const char *line = text, *next; line < end; line = next) {
        double value;
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        if (line_end == NULL)
            line_end = end;
        next = line_end < end ? line_end + 1 : end;
        const char *series = *line == '#' ? line : series_end(line, line_end);
        if (series == line || !is_wanted(line, series, wanted))
            continue;
        if (!sample_value(series, line_end, &value))
            return tl_error_set(err, TL_ERR_PROTOCOL, "the sample of \"%s\" has no number", wanted);
        sum += value;
        found = true;
    }
    *number = sum;
    return found || tl_error_set(err, TL_ERR_PROTOCOL, "the answer has no metric \"%s\"", wanted);
}

bool tl_reading_take(enum tl_probe_format format, const char *text, size_t length,
                     const char *value, double *number, struct tl_error *err)
{
    double found = 0;
    bool ok = format == TL_PROBE_JSON ? take_json(text, length, value, &found, err)
                                      : take_prometheus(text, length, value, &found, err);
    if (!ok)
        return false;
    if (!isfinite(found) || found < 0)
        return tl_error_set(err, TL_ERR_PROTOCOL, "\"%s\" is no number of at least 0", value);
    *number = found;
    return true;
}

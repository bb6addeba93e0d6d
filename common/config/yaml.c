/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <yaml.h>

#include "common/base/text.h"
#include "common/config/yaml.h"

#define NAME_SHOWN 100 /* bytes of a file's name that a message has room for */

struct reader {
    yaml_parser_t parser;
    const char *name;
    const unsigned char *bytes;
    size_t length;
    struct tl_error *err;
};

bool tl_yaml_locate(struct tl_error *err, const char *name, struct tl_yaml_place place)
{
    size_t length = strlen(name);
    bool cut = length > NAME_SHOWN;
    return tl_error_prefix(err, "%s%s:%zu:%zu", cut ? "..." : "",
                           cut ? name + length - NAME_SHOWN : name, place.line, place.column);
}

bool tl_yaml_fail(struct tl_error *err, const char *name, struct tl_yaml_place place,
                  const char *format, ...)
{
    char sentence[sizeof(((struct tl_error *)NULL)->text)];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    tl_error_set(err, TL_ERR_INVALID, "%s", sentence);
    return tl_yaml_locate(err, name, place);
}

static struct tl_yaml_place place_of(yaml_mark_t mark)
{
    return (struct tl_yaml_place){mark.line + 1, mark.column + 1};
}

/* libyaml gives only the offset of bytes that are not text. */
static struct tl_yaml_place place_of_offset(const struct reader *reader, size_t offset)
{
    struct tl_yaml_place place = {1, 1};
    for (size_t i = 0; i < offset && i < reader->length; i++) {
        if (reader->bytes[i] == '\n') {
            place.line++;
            place.column = 1;
        } else if ((reader->bytes[i] & 0xc0) != 0x80) {
            place.column++;
        }
    }
    return place;
}

static bool next_event(struct reader *reader, yaml_event_t *event)
{
    const yaml_parser_t *parser = &reader->parser;
    if (yaml_parser_parse(&reader->parser, event))
        return true;
    const char *problem = parser->problem != NULL ? parser->problem : "unknown problem";
    if (parser->error == YAML_MEMORY_ERROR)
        return tl_error_set(reader->err, TL_ERR_NOMEM, "out of memory while reading %s",
                            reader->name);
    if (parser->error == YAML_READER_ERROR)
        return tl_yaml_fail(reader->err, reader->name,
                            place_of_offset(reader, parser->problem_offset), "not UTF-8 text: %s",
                            problem);
    return tl_yaml_fail(reader->err, reader->name, place_of(parser->problem_mark),
                        "not valid YAML: %s%s%s", problem, parser->context != NULL ? ", " : "",
                        parser->context != NULL ? parser->context : "");
}

/* Refuses what makes a file mean something else than it says. */
static bool check_plain(struct reader *reader, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL;
    const yaml_char_t *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    }
    const char *what = NULL;
    if (event->type == YAML_ALIAS_EVENT)
        what = "aliases (*name) are";
    else if (anchor != NULL)
        what = "anchors (&name) are";
    else if (tag != NULL)
        what = "tags (!name) are";
    if (what != NULL)
        return tl_yaml_fail(reader->err, reader->name, place_of(event->start_mark),
                            "%s not allowed; write the value out", what);
    return true;
}

static struct tl_yaml *make_node(struct reader *reader, const yaml_event_t *event)
{
    struct tl_yaml *node = calloc(1, sizeof(*node));
    if (node == NULL) {
        tl_error_set(reader->err, TL_ERR_NOMEM, "out of memory while reading %s", reader->name);
        return NULL;
    }
    node->place = place_of(event->start_mark);
    if (event->type == YAML_MAPPING_START_EVENT)
        node->kind = TL_YAML_MAPPING;
    else if (event->type == YAML_SEQUENCE_START_EVENT)
        node->kind = TL_YAML_LIST;
    return node;
}

/* A copy of a scalar's text, which must not hold a zero byte ("\0" in quotes). */
static char *copy_text(struct reader *reader, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (strlen(value) != length) {
        tl_yaml_fail(reader->err, reader->name, place_of(event->start_mark),
                     "a zero byte is not allowed in text");
        return NULL;
    }
    char *text = strdup(value);
    if (text == NULL)
        tl_error_set(reader->err, TL_ERR_NOMEM, "out of memory while reading %s", reader->name);
    return text;
}

struct key {
    char *text; /* owned */
    struct tl_yaml_place place;
};

/* Takes a mapping's key off the event and puts the event of its value in its place. */
static bool read_key(struct reader *reader, const struct tl_yaml *mapping, yaml_event_t *event,
                     struct key *key)
{
    key->place = place_of(event->start_mark);
    if (!check_plain(reader, event))
        return false;
    if (event->type != YAML_SCALAR_EVENT)
        return tl_yaml_fail(reader->err, reader->name, key->place,
                            "a key must be plain text, not a mapping or a list");
    key->text = copy_text(reader, event);
    if (key->text == NULL)
        return false;
    const struct tl_yaml *twin = tl_yaml_get(mapping, key->text);
    if (twin != NULL) {
        char quoted[64];
        tl_quote(key->text, quoted, sizeof(quoted));
        return tl_yaml_fail(reader->err, reader->name, key->place,
                            "%s is given twice; it is already in line %zu", quoted,
                            twin->key_place.line);
    }
    yaml_event_delete(event);
    return next_event(reader, event);
}

static struct tl_yaml *read_node(struct reader *reader, const yaml_event_t *event, int depth);

/* The entries up to the end of the mapping or list. */
static bool read_entries(struct reader *reader, struct tl_yaml *parent, int depth)
{
    struct tl_yaml **end = &parent->first;
    for (int n = 0;; n++) {
        yaml_event_t event;
        if (!next_event(reader, &event))
            return false;
        struct key key = {0};
        bool last = event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT;
        if (!last && n == TL_YAML_ENTRIES_MAX)
            tl_yaml_fail(reader->err, reader->name, place_of(event.start_mark),
                         "more than %d entries in one place", TL_YAML_ENTRIES_MAX);
        else if (!last && (parent->kind == TL_YAML_LIST || read_key(reader, parent, &event, &key)))
            *end = read_node(reader, &event, depth + 1);
        yaml_event_delete(&event);
        if (*end == NULL) {
            free(key.text);
            return last;
        }
        (*end)->key = key.text;
        (*end)->key_place = key.place;
        end = &(*end)->next;
    }
}

/* The complete value that begins with this event. */
static struct tl_yaml *read_node(struct reader *reader, const yaml_event_t *event, int depth)
{
    if (!check_plain(reader, event))
        return NULL;
    bool scalar = event->type == YAML_SCALAR_EVENT;
    if (!scalar && depth > TL_YAML_DEPTH_MAX) {
        tl_yaml_fail(reader->err, reader->name, place_of(event->start_mark),
                     "mappings and lists nested deeper than %d levels", TL_YAML_DEPTH_MAX);
        return NULL;
    }
    struct tl_yaml *node = make_node(reader, event);
    if (node == NULL)
        return NULL;
    bool good;
    if (scalar) {
        node->text = copy_text(reader, event);
        good = node->text != NULL;
        node->null = good && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                     (*node->text == '\0' || strcmp(node->text, "~") == 0 ||
                      strcmp(node->text, "null") == 0);
        if (node->null)
            *node->text = '\0';
    } else {
        good = read_entries(reader, node, depth);
    }
    if (!good)
        tl_yaml_free(&node);
    return node;
}

/* The only document, from the event after the start of the stream. */
static struct tl_yaml *read_document(struct reader *reader, yaml_event_t *event)
{
    if (event->type == YAML_STREAM_END_EVENT) {
        struct tl_yaml *empty = make_node(reader, event);
        if (empty != NULL)
            empty->kind = TL_YAML_MAPPING;
        return empty;
    }
    yaml_event_delete(event);
    if (!next_event(reader, event))
        return NULL;
    struct tl_yaml *root = read_node(reader, event, 1);
    /* The end of the document, then the end of the stream. */
    for (int i = 0; i < 2 && root != NULL; i++) {
        yaml_event_delete(event);
        if (!next_event(reader, event))
            tl_yaml_free(&root);
    }
    if (root != NULL && event->type != YAML_STREAM_END_EVENT) {
        tl_yaml_fail(reader->err, reader->name, place_of(event->start_mark),
                     "a second document begins here; only one is allowed");
        tl_yaml_free(&root);
    }
    return root;
}

struct tl_yaml *tl_yaml_parse(const char *name, const void *bytes, size_t length,
                              struct tl_error *err)
{
    struct reader reader = {.name = name, .bytes = bytes, .length = length, .err = err};
    if (length > TL_YAML_BYTES_MAX) {
        tl_yaml_fail(err, name, (struct tl_yaml_place){1, 1}, "larger than 1 MiB (%d bytes)",
                     TL_YAML_BYTES_MAX);
        return NULL;
    }
    if (!yaml_parser_initialize(&reader.parser)) {
        tl_error_set(err, TL_ERR_NOMEM, "out of memory while reading %s", name);
        return NULL;
    }
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, length > 0 ? bytes : (const void *)"", length);
    struct tl_yaml *root = NULL;
    yaml_event_t event;
    if (next_event(&reader, &event)) { /* the start of the stream */
        yaml_event_delete(&event);
        if (next_event(&reader, &event))
            root = read_document(&reader, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&reader.parser);
    return root;
}

static struct tl_yaml *json_node(const json_t *value, int depth, struct tl_error *err);

/* The entries of an object or array. */
static bool json_entries(const json_t *value, struct tl_yaml *parent, int depth,
                         struct tl_error *err)
{
    struct tl_yaml **end = &parent->first;
    void *at = json_object_iter((json_t *)(uintptr_t)value);
    size_t n = parent->kind == TL_YAML_LIST ? json_array_size(value) : json_object_size(value);
    for (size_t i = 0; i < n; i++) {
        const json_t *item =
            parent->kind == TL_YAML_LIST ? json_array_get(value, i) : json_object_iter_value(at);
        *end = json_node(item, depth + 1, err);
        if (*end == NULL)
            return false;
        if (parent->kind == TL_YAML_MAPPING) {
            (*end)->key = strdup(json_object_iter_key(at));
            if ((*end)->key == NULL)
                return tl_error_set(err, TL_ERR_NOMEM, "out of memory for a body");
            at = json_object_iter_next((json_t *)(uintptr_t)value, at);
        }
        end = &(*end)->next;
    }
    return true;
}

static struct tl_yaml *json_node(const json_t *value, int depth, struct tl_error *err)
{
    struct tl_yaml *node = NULL;
    size_t n = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    if (depth > TL_YAML_DEPTH_MAX || n > TL_YAML_ENTRIES_MAX)
        tl_error_set(
            err, TL_ERR_INVALID,
            "objects and arrays nested deeper than %d levels, or with more than %d entries",
            TL_YAML_DEPTH_MAX, TL_YAML_ENTRIES_MAX);
    else if ((node = calloc(1, sizeof(*node))) == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "out of memory for a body");
    if (node == NULL)
        return NULL;
    node->place = node->key_place = (struct tl_yaml_place){1, 1};
    bool good = true;
    if (json_is_object(value) || json_is_array(value)) {
        node->kind = json_is_array(value) ? TL_YAML_LIST : TL_YAML_MAPPING;
        good = json_entries(value, node, depth, err);
    } else {
        node->null = json_is_null(value);
        node->text = json_is_string(value) ? strdup(json_string_value(value))
                     : node->null          ? strdup("")
                                  : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        good = node->text != NULL || tl_error_set(err, TL_ERR_NOMEM, "out of memory for a body");
    }
    if (!good)
        tl_yaml_free(&node);
    return node;
}

struct tl_yaml *tl_yaml_of_json(const json_t *value, struct tl_error *err)
{
    return json_node(value, 1, err);
}

void tl_yaml_free(struct tl_yaml **root)
{
    struct tl_yaml *node = *root;
    *root = NULL;
    while (node != NULL) {
        struct tl_yaml *next = node->next;
        tl_yaml_free(&node->first);
        free(node->key);
        free(node->text);
        free(node);
        node = next;
    }
}

const struct tl_yaml *tl_yaml_get(const struct tl_yaml *mapping, const char *key)
{
    const struct tl_yaml *entry = mapping->first;
    while (entry != NULL && strcmp(entry->key, key) != 0)
        entry = entry->next;
    return entry;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML text as a tree of nodes with their places: the plain part of YAML that a configuration
 * needs, read with libyaml's event parser. Refused with `name:line:column: what, and the limit`:
 * aliases, anchors, tags, more than one document, keys that are no plain text, keys given twice,
 * and anything beyond the limits below.
 */
#ifndef TL_CONFIG_YAML_H
#define TL_CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

#define TL_YAML_BYTES_MAX   (1024 * 1024)
#define TL_YAML_DEPTH_MAX   8    /* mappings and lists inside each other */
#define TL_YAML_ENTRIES_MAX 1024 /* entries of one mapping or list */

enum tl_yaml_kind { TL_YAML_SCALAR, TL_YAML_MAPPING, TL_YAML_LIST };

struct json_t;

struct tl_yaml_place {
    size_t line, column; /* from 1; columns count characters */
};

struct tl_yaml {
    enum tl_yaml_kind kind;
    bool null;  /* an empty plain scalar, or ~ or null: text is "" then */
    char *text; /* of a scalar */
    struct tl_yaml_place place;
    char *key; /* as an entry of a mapping; else NULL */
    struct tl_yaml_place key_place;
    struct tl_yaml *first, *next; /* entries of a mapping or list; the next entry beside this one */
};

/* Reads the bytes. `name` stands for the file in messages. An empty document is an empty mapping.
 * NULL on failure; the caller frees with tl_yaml_free. */
struct tl_yaml *tl_yaml_parse(const char *name, const void *bytes, size_t length,
                              struct tl_error *err);
void tl_yaml_free(struct tl_yaml **root);

/* The same tree of a JSON value: numbers and booleans are scalars. Places have line 1. NULL for
 * what is nested too deep, or has too many entries. Freed likewise. */
struct tl_yaml *tl_yaml_of_json(const struct json_t *value, struct tl_error *err);

/* The entry of a mapping with this key, or NULL. */
const struct tl_yaml *tl_yaml_get(const struct tl_yaml *mapping, const char *key);

/* Sets TL_ERR_INVALID with `name:line:column: sentence`; a very long name keeps its end. Returns
 * false. */
bool tl_yaml_fail(struct tl_error *err, const char *name, struct tl_yaml_place place,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Puts `name:line:column: ` before the sentence already in err. Returns false. */
bool tl_yaml_locate(struct tl_error *err, const char *name, struct tl_yaml_place place);

#endif

/* JSON on standard output. */
#ifndef TL_CTL_JSON_H
#define TL_CTL_JSON_H

#include <stdbool.h>

#include <jansson.h>

/* Writes the value, indented, with a line end, and releases it. False when it is NULL (out of
 * memory) or cannot be written. */
bool tl_json_write(json_t *value);

#endif

/* JSON on standard output. */
#ifndef TL_CTL_JSON_H
#define TL_CTL_JSON_H

#include <stdbool.h>

#include <jansson.h>

/* Writes the value, indented, and a line end; releases it. False when it is NULL (out of memory) or
 * could not be written. */
bool tl_json_write(json_t *value);

#endif

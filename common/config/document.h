/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the reference of all settings, written from those that the programs read them with.
 */
#ifndef TL_CONFIG_DOCUMENT_H
#define TL_CONFIG_DOCUMENT_H

#include <stdio.h>

/* Writes the tables of docs/operators/configuration.md: every setting with its name in the
 * environment, type, default, bounds and meaning. */
void tl_config_document(FILE *out);

#endif

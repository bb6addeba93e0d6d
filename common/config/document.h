/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of all settings, written from the tables that the programs read them with. */
#ifndef TL_CONFIG_DOCUMENT_H
#define TL_CONFIG_DOCUMENT_H

#include <stdio.h>

/* Writes the tables of docs/operators/configuration.md: every setting with its name in the
 * environment, type, default, bounds and meaning. */
void tl_config_document(FILE *out);
/* Writes conf/reference.yaml: every setting with its default, as a file. */
void tl_config_reference(FILE *out);

#endif

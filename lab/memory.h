/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the command line. Where there is none, it says so and ends with status 2: nothing it
 * could do instead is worth a way back from every allocation. */
#ifndef TL_LAB_MEMORY_H
#define TL_LAB_MEMORY_H

#include <stddef.h>

#include "common/base/text.h"

/* Zeroed; freed with free(). n may be 0. */
void *tl_xalloc(size_t n, size_t size);
/* As tl_grow (common/base/grow.h). */
void *tl_xgrow(void *list, size_t *capacity, size_t wanted, size_t element);

/* What was appended to the text, "" for nothing, all of it: else the command has ended. Borrowed.
 */
const char *tl_xtext(const struct tl_text *text);

/* Ends the command; what is not written to standard output yet is dropped. Also for those who
 * notice by themselves that something could not be allocated. */
_Noreturn void tl_no_memory(void);

/* What has to be done before such an end: a terminal or a store put back as it was. NULL: nothing.
 */
void tl_memory_last(void (*work)(void *context), void *context);

#endif

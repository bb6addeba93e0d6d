/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All visitors of a queue, as CSV or JSON lines, in bounded memory: those who wait in the order of
 * the line, those who are active, those who ended lately. Each piece is a page of at most 1000
 * visitors. The export is no snapshot: who moves on meanwhile may be missing or be listed twice, in
 * both states.
 */
#ifndef TL_CONTROL_EXPORT_H
#define TL_CONTROL_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/control/answer.h"

struct tl_control;

struct tl_control_export;

/* Begins the export that the request asks for: GET
 * /v1/admin/queues/{queue}/export?format=csv|jsonl. Borrows the control until the end; other calls
 * may be made between two pieces. NULL: the answer has the problem; otherwise it has status 200 and
 * is cleared as well. */
struct tl_control_export *tl_control_export_begin(struct tl_control *control,
                                                  const struct tl_control_request *request,
                                                  struct tl_control_answer *answer);
/* "text/csv; charset=utf-8; header=present" or "application/jsonl". Static storage. */
const char *tl_control_export_type(const struct tl_control_export *export);
/* How many visitors there were at the beginning, and how many are written: for progress. */
uint64_t tl_control_export_total(const struct tl_control_export *export);
uint64_t tl_control_export_written(const struct tl_control_export *export);
/* The next piece, borrowed until the next call. length 0: that was all. False: the store failed;
 * the caller breaks the stream off, so that nobody takes the part for the whole. */
bool tl_control_export_next(struct tl_control_export *export, const char **bytes, size_t *length,
                            struct tl_error *err);
void tl_control_export_end(struct tl_control_export **export);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the estimate costs. */
#ifndef TL_BENCH_COST_H
#define TL_BENCH_COST_H

/* Prints the time of an entry of the events stream, of an estimate and of a new outlook, and the
 * memory, for a queue of this capacity. */
void cost_print(unsigned capacity);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that block prefixes of addresses. */
#ifndef TL_CONTROL_BLOCKS_H
#define TL_CONTROL_BLOCKS_H

struct tl_control_call;

void tl_handle_block_list(struct tl_control_call *call);
/* {"prefix", "queue", "for": "1h"} */
void tl_handle_block(struct tl_control_call *call);
/* ?prefix=&queue= */
void tl_handle_unblock(struct tl_control_call *call);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that list, make and revoke the tokens of operators. */
#ifndef TL_CONTROL_TOKENS_H
#define TL_CONTROL_TOKENS_H

struct tl_control_call;

void tl_handle_token_list(struct tl_control_call *call);
/* {"name", "role"}: the answer has the token's text, this once. */
void tl_handle_token_make(struct tl_control_call *call);
void tl_handle_token_revoke(struct tl_control_call *call);

#endif

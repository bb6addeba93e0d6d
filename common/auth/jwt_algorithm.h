/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms that sign our JSON Web Tokens. */
#ifndef TL_JWT_ALGORITHM_H
#define TL_JWT_ALGORITHM_H

enum tl_jwt_algorithm { TL_JWT_HS256, TL_JWT_ES256 };

/* As in a token's header: "HS256" or "ES256". */
const char *tl_jwt_algorithm_name(enum tl_jwt_algorithm algorithm);

#endif

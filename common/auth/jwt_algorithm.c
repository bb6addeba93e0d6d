/* SPDX-License-Identifier: Apache-2.0 */
#include "common/auth/jwt_algorithm.h"

const char *tl_jwt_algorithm_name(enum tl_jwt_algorithm algorithm)
{
    return algorithm == TL_JWT_HS256 ? "HS256" : "ES256";
}

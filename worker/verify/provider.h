/* SPDX-License-Identifier: Apache-2.0 */
/* The challenge services that a queue can use: what differs between them. All of them verify a
 * token in the same way: a form with `secret`, `response` and `remoteip`, answered with JSON. */
#ifndef TL_PROVIDER_H
#define TL_PROVIDER_H

#include "common/config/settings.h"

struct tl_provider {
    const char *name;       /* as in the configuration */
    const char *title;      /* for people */
    const char *verify_url; /* where tokens are verified */
    const char *script_url; /* of the script that a page loads */
    const char *sources;    /* what the page's policy must allow for that script */
};

const struct tl_provider *tl_provider_of(enum tl_challenge_provider provider);

#endif

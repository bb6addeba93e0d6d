/* SPDX-License-Identifier: Apache-2.0 */
/* Which challenge services there are, and what their answers say of a token. */
#ifndef TL_VERDICT_H
#define TL_VERDICT_H

#include <stddef.h>

#include "common/config/settings.h"

/* What differs between the services. All of them verify a token in the same way: a form with
 * `secret`, `response` and `remoteip`, answered with JSON. */
struct tl_provider {
    const char *name;       /* as in the configuration */
    const char *title;      /* for people */
    const char *verify_url; /* where tokens are verified */
    const char *script_url; /* of the script that a page loads */
    const char *sources;    /* what the page's policy must allow for that script */
};

const struct tl_provider *tl_provider_of(enum tl_challenge_provider provider);

enum {
    TL_VERDICT_ANSWER_MAX = 16 * 1024, /* bytes of an answer; a longer one is none */
    TL_VERDICT_WHY_MAX = 160,
};

enum tl_verdict_kind {
    TL_VERDICT_PASSED,
    TL_VERDICT_REFUSED,     /* the service, or our rules, do not accept the token */
    TL_VERDICT_UNREACHABLE, /* no answer that can be used */
    TL_VERDICT_TIMED_OUT,   /* likewise, in time */
    TL_VERDICT_NO_SECRET,   /* the service does not accept our secret */
};

struct tl_verdict {
    enum tl_verdict_kind kind;
    char why[TL_VERDICT_WHY_MAX]; /* printable; "" for PASSED. REFUSED: for the client, else for the
                                     operator */
};

/* What we ask for beyond the service's consent. */
struct tl_verdict_rules {
    const char *hostname; /* "": any. Borrowed */
    double min_score;     /* 0 to 1; 0: none */
};

/* Decodes an answer, with its HTTP status. What an answer to a strange token could look like is
 * REFUSED and never UNREACHABLE, which may open another way in. */
void tl_verdict_decode(unsigned status, const char *text, size_t length,
                       const struct tl_verdict_rules *rules, struct tl_verdict *verdict);
/* Sets kind and sentence; bytes that are not printable ASCII become '?'. */
void tl_verdict_set(struct tl_verdict *verdict, enum tl_verdict_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

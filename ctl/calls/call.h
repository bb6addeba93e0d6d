/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the control room, as commands make them: straight on Redis, in this process
 * (common/control), or with --server over HTTP at an admin listener. Answers are the same.
 */
#ifndef TL_CTL_CALLS_CALL_H
#define TL_CTL_CALLS_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/control/answer.h"

#include "ctl/calls/stream.h"
#include "ctl/shell/command.h"

struct tl_ctl_call;

/* What is asked for. */
struct tl_ctl_ask {
    const char *method;   /* "GET", ... */
    const char *target;   /* path and query; from tl_ctl_target */
    const json_t *body;   /* borrowed; NULL: none */
    bool sends;           /* there has to be a body: NULL means that it could not be made */
    const char *if_match; /* NULL: none */
};

/* Opens the way that the options name. NULL on failure. */
struct tl_ctl_call *tl_ctl_call_open(const struct tl_ctl_options *options, struct tl_error *err);
void tl_ctl_call_close(struct tl_ctl_call **call);

/* Asks. A problem is an answer, too. False: there is no answer. Clear the answer with
 * tl_control_answer_clear in either case. */
bool tl_ctl_call_ask(struct tl_ctl_call *call, const struct tl_ctl_ask *ask,
                     struct tl_control_answer *answer, struct tl_error *err);
/* Asks; *body gets the body of a good answer, owned (an empty object if it has none). Anything else
 * is told on standard error (with --json the problem is also written to standard output), and the
 * exit status returned. */
int tl_ctl_call_body(struct tl_ctl_call *call, const struct tl_ctl_ask *ask, json_t **body);
/* The same for a command that asks once: opens and closes, too. */
int tl_ctl_call_once(const struct tl_ctl_options *options, const struct tl_ctl_ask *ask,
                     json_t **body);
/* The exit status for an answer that is a problem, which is told as above. */
int tl_ctl_call_problem(const struct tl_ctl_options *options,
                        const struct tl_control_answer *answer, bool changes);

/* Asks for a stream (common/control/export.h), and gives it to the sink. False with err: it broke
 * off, and what the sink has is a part. An answer that is a problem is in *answer. */
bool tl_ctl_call_stream(struct tl_ctl_call *call, const struct tl_ctl_stream *stream,
                        struct tl_control_answer *answer, struct tl_error *err);

/* Writes "/v1/admin" and the parts, each percent-encoded after a slash; NULL ends them. False, told
 * on standard error, when a part is empty or all of it is too long. */
bool tl_ctl_target(char target[TL_CTL_TARGET_MAX], const char *first, ...)
    __attribute__((sentinel));
/* Appends a parameter to the query; value NULL: none. */
bool tl_ctl_target_add(char target[TL_CTL_TARGET_MAX], const char *name, const char *value);

#endif

/* Refusals as RFC 9457 problem details (application/problem+json). */
#ifndef TL_PROBLEM_H
#define TL_PROBLEM_H

#include "worker/http/server.h"

enum tl_problem {
    TL_PROBLEM_NOT_FOUND,
    TL_PROBLEM_METHOD,
    TL_PROBLEM_NO_QUEUE,
    TL_PROBLEM_BAD_BODY,
    TL_PROBLEM_BAD_QUERY,
    TL_PROBLEM_NOT_JSON,
    TL_PROBLEM_TOO_LARGE,
    TL_PROBLEM_NOT_TRUSTED,
    TL_PROBLEM_BAD_TICKET,
    TL_PROBLEM_BY_INVITATION,
    TL_PROBLEM_BAD_INVITE,
    TL_PROBLEM_INVITE_SPENT,
    TL_PROBLEM_TOO_MANY,
    TL_PROBLEM_OLD_GENERATION,
    TL_PROBLEM_NOT_NUMBERED,
    TL_PROBLEM_NOT_ADMITTED,
    TL_PROBLEM_BUSY,    /* more is under way than may be */
    TL_PROBLEM_STORE,   /* the store cannot be reached or refuses */
    TL_PROBLEM_LOADING, /* the line is not in memory yet */
    TL_PROBLEM_UNKNOWN_OUTCOME,
    TL_PROBLEM_STOPPING,
    TL_PROBLEM_COUNT
};

/* Answers with this problem; detail is printf-style, for a person, and must hold nothing secret. */
void tl_problem_answer(struct tl_request *request, enum tl_problem problem, const char *detail, ...)
    __attribute__((format(printf, 3, 4)));

/* 405 with what is allowed ("GET, HEAD"). */
void tl_problem_method(struct tl_request *request, const char *allowed);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors have a kind and a sentence. A function that can fail takes a `struct tl_error *` as its
 * last argument and returns false (or a negative value, or NULL); the kind is for code, the
 * sentence for people.
 */
#ifndef TL_ERROR_H
#define TL_ERROR_H

#include <stdbool.h>

enum tl_error_kind {
    TL_OK = 0,
    TL_ERR_INVALID,  /* bad input: configuration, request, wire bytes; nothing was changed */
    TL_ERR_SYSTEM,   /* a system call failed; the sentence holds strerror */
    TL_ERR_NOMEM,    /* an allocation failed */
    TL_ERR_CONNECT,  /* the store could not be reached, or the connection broke: outcome unknown */
    TL_ERR_TIMEOUT,  /* the store did not answer in time: outcome unknown, connection closed */
    TL_ERR_LOADING,  /* the store is still loading its data: try again later */
    TL_ERR_READONLY, /* the store is a replica or was demoted: connection closed */
    TL_ERR_MOVED,    /* the node of a cluster does not serve this slot now; nothing was changed */
    TL_ERR_MISCONF,  /* the store cannot persist or replicate as it must, and refuses writes */
    TL_ERR_OOM,      /* the store is at its memory limit and refuses writes */
    TL_ERR_NOGROUP,  /* the stream or its consumer group does not exist (the store lost its data) */
    TL_ERR_NOFUNCTION, /* the store lacks the library of this release (common/store/library.h) */
    TL_ERR_STALE,      /* a function refused an outdated fence: another process holds the lease */
    TL_ERR_ORDER,      /* a function refused an entry while an older one is pending */
    TL_ERR_NOQUEUE,    /* the queue does not exist in the store */
    TL_ERR_RETIRED,    /* an operator deleted the queue: only an operator creates it again */
    TL_ERR_DENIED,     /* our user of the store lacks a permission */
    TL_ERR_PROTOCOL,   /* the store answered something we cannot understand */
    TL_ERR_STORE,      /* any other error the store answered with */
};

struct tl_error {
    enum tl_error_kind kind;
    char text[320];
};

/* Stores kind and the printf-style sentence in err (which may be NULL). Always returns false, so
 * that `return tl_error_set(err, ...)` reads as a failure. */
bool tl_error_set(struct tl_error *err, enum tl_error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the sentence already in err. Always returns false. */
bool tl_error_prefix(struct tl_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A short lower-case name of the kind, for logs and metrics ("connect", "oom", ...). Static
 * storage. */
const char *tl_error_kind_name(enum tl_error_kind kind);

#endif

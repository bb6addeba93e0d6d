/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to PostgreSQL, of one thread. Every step has a time limit; one that is not kept
 * closes the connection. Then the outcome of a commit is unknown.
 */
#ifndef TL_POSTGRES_H
#define TL_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>

#include "common/base/error.h"

enum { TL_POSTGRES_LIMIT_MS = 30000 }; /* of a statement, unless said otherwise */

/* A zeroed struct is closed. */
struct tl_postgres {
    PGconn *connection;
    int64_t limit_ms; /* of a statement, and of connecting, which takes whole seconds and two at
                         least; 0: TL_POSTGRES_LIMIT_MS, and five seconds */
    bool may_pass;    /* the last statement that the server refused may succeed later: it was
                         stopped, or a lock or the server's room was in its way */
};

/* Is this an address that libpq understands? The sentence of an error never holds a password. */
bool tl_postgres_check(const char *url, struct tl_error *err);

/* Connects, unless it is connected, as this program; names then mean the tables of the schema
 * "tellerline". TL_ERR_CONNECT when the server cannot be reached. */
bool tl_postgres_open(struct tl_postgres *postgres, const char *url, const char *program,
                      struct tl_error *err);
void tl_postgres_close(struct tl_postgres *postgres);
bool tl_postgres_connected(const struct tl_postgres *postgres);

/* Runs one statement with n texts for $1 and so on (NULL is NULL). NULL with err on failure:
 * TL_ERR_CONNECT when the connection is gone, else TL_ERR_STORE with what the server said. The
 * caller clears the result. */
PGresult *tl_postgres_run(struct tl_postgres *postgres, const char *sql, int n,
                          const char *const *values, struct tl_error *err);
/* The same when the result does not matter; without texts the statement may be several. */
bool tl_postgres_do(struct tl_postgres *postgres, const char *sql, int n, const char *const *values,
                    struct tl_error *err);
/* A number as a text for $1 and so on; returns the text. */
enum { TL_POSTGRES_TEXT = 24 };
const char *tl_postgres_text(uint64_t number, char text[TL_POSTGRES_TEXT]);
/* A column that is no negative number; 0 for NULL. */
uint64_t tl_postgres_number(const PGresult *rows, int row, int column);
/* COPY ... FROM STDIN of these bytes. */
bool tl_postgres_copy(struct tl_postgres *postgres, const char *sql, const char *bytes,
                      size_t length, struct tl_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/postgres.h"
#include "common/base/clock.h"

enum { COPY_PART = 1 << 20, CONNECT_LIMIT_S = 5, CONNECT_LIMIT_MIN_S = 2, SERVER_FIRST_MS = 200 };

/* The first line of what libpq or the server says. */
static bool fail(struct tl_error *err, enum tl_error_kind kind, const char *message)
{
    while (*message == ' ' || *message == '\n')
        message++;
    return tl_error_set(err, kind, "PostgreSQL: %.*s", (int)strcspn(message, "\n"), message);
}

bool tl_postgres_check(const char *url, struct tl_error *err)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &message);
    PQconninfoFree(options);
    PQfreemem(message); /* it may hold the address, and so a password */
    return options != NULL || tl_error_set(err, TL_ERR_INVALID, "no address of PostgreSQL");
}

/* What the server mentions, as that it ends: errors say it again. */
static void keep_quiet(void *context, const char *message)
{
    (void)context, (void)message;
}

void tl_postgres_close(struct tl_postgres *postgres)
{
    PQfinish(postgres->connection);
    postgres->connection = NULL;
}

bool tl_postgres_connected(const struct tl_postgres *postgres)
{
    return postgres->connection != NULL;
}

bool tl_postgres_open(struct tl_postgres *postgres, const char *url, const char *program,
                      struct tl_error *err)
{
    static const char *const names[] = {"dbname", "connect_timeout", "fallback_application_name",
                                        NULL};
    char limit[24], settings[160];
    const char *const values[] = {url, limit, program, NULL};
    if (postgres->connection != NULL)
        return true;
    const int64_t limit_s = postgres->limit_ms == 0 ? CONNECT_LIMIT_S : postgres->limit_ms / 1000;
    snprintf(limit, sizeof(limit), "%lld",
             (long long)(limit_s > CONNECT_LIMIT_MIN_S ? limit_s : CONNECT_LIMIT_MIN_S));
    postgres->connection = PQconnectdbParams(names, values, 1);
    if (postgres->connection == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a connection to PostgreSQL");
    (void)PQsetNoticeProcessor(postgres->connection, keep_quiet, NULL);
    if (PQstatus(postgres->connection) != CONNECTION_OK ||
        PQsetnonblocking(postgres->connection, 1) != 0) {
        fail(err, TL_ERR_CONNECT, PQerrorMessage(postgres->connection));
        tl_postgres_close(postgres);
        return false;
    }
    /* The server then also ends by itself what nobody waits for. */
    int length = snprintf(settings, sizeof(settings),
                          "SET client_min_messages = warning; SET search_path = tellerline");
    if (postgres->limit_ms > 0)
        snprintf(settings + length, sizeof(settings) - (size_t)length,
                 "; SET statement_timeout = %lld", (long long)postgres->limit_ms);
    bool ok = tl_postgres_do(postgres, settings, 0, NULL, err);
    if (!ok)
        tl_postgres_close(postgres);
    return ok;
}

/* Closes the connection, for this reason or for what libpq says. */
static bool lose(struct tl_postgres *postgres, const char *reason, struct tl_error *err)
{
    fail(err, TL_ERR_CONNECT, reason != NULL ? reason : PQerrorMessage(postgres->connection));
    tl_postgres_close(postgres);
    return false;
}

/* Sends what is to be sent; and waits for an answer, if one is wanted. */
static bool wait(struct tl_postgres *postgres, bool for_answer, struct tl_error *err)
{
    PGconn *connection = postgres->connection;
    /* Behind the server's own limit, after which the connection is still good. */
    const int64_t limit_ms =
        postgres->limit_ms == 0 ? TL_POSTGRES_LIMIT_MS : postgres->limit_ms + SERVER_FIRST_MS;
    const int64_t until_ms = tl_clock_ms() + limit_ms;
    for (;;) {
        int unsent = PQflush(connection);
        if (unsent < 0)
            return lose(postgres, NULL, err);
        if (unsent == 0 && (!for_answer || !PQisBusy(connection)))
            return true;
        int64_t left_ms = until_ms - tl_clock_ms();
        struct pollfd one = {.fd = PQsocket(connection),
                             .events = (short)(unsent ? POLLIN | POLLOUT : POLLIN)};
        if (left_ms <= 0)
            return lose(postgres, "no answer in time", err);
        (void)poll(&one, 1, (int)left_ms);
        if ((one.revents & ~POLLOUT) != 0 && !PQconsumeInput(connection))
            return lose(postgres, NULL, err);
    }
}

/* By the class of the error (SQLSTATE): rolled back, no room, a lock, stopped from outside. */
static bool may_pass(const PGresult *failed)
{
    static const char *const classes[] = {"40", "53", "55", "57"};
    const char *state = PQresultErrorField(failed, PG_DIAG_SQLSTATE);
    for (size_t i = 0; state != NULL && i < sizeof(classes) / sizeof(classes[0]); i++)
        if (strncmp(state, classes[i], 2) == 0)
            return true;
    return false;
}

/* The last result of a statement, or the one that asks for data. The first error counts. */
static PGresult *receive(struct tl_postgres *postgres, struct tl_error *err)
{
    PGresult *last = NULL;
    for (;;) {
        if (!wait(postgres, true, err)) {
            PQclear(last);
            return NULL;
        }
        PGresult *next = PQgetResult(postgres->connection);
        if (next == NULL)
            break;
        bool has_failed = last != NULL && PQresultStatus(last) == PGRES_FATAL_ERROR;
        PQclear(has_failed ? next : last);
        last = has_failed ? last : next;
        if (PQresultStatus(last) == PGRES_COPY_IN)
            return last;
    }
    ExecStatusType status = PQresultStatus(last); /* of NULL: an error */
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return last;
    postgres->may_pass = may_pass(last);
    if (PQstatus(postgres->connection) != CONNECTION_OK)
        lose(postgres, NULL, err);
    else
        fail(err, TL_ERR_STORE, PQresultErrorMessage(last));
    PQclear(last);
    return NULL;
}

PGresult *tl_postgres_run(struct tl_postgres *postgres, const char *sql, int n,
                          const char *const *values, struct tl_error *err)
{
    int sent = n > 0 ? PQsendQueryParams(postgres->connection, sql, n, NULL, values, NULL, NULL, 0)
                     : PQsendQuery(postgres->connection, sql);
    if (!sent) {
        lose(postgres, NULL, err);
        return NULL;
    }
    return receive(postgres, err);
}

bool tl_postgres_do(struct tl_postgres *postgres, const char *sql, int n, const char *const *values,
                    struct tl_error *err)
{
    PGresult *result = tl_postgres_run(postgres, sql, n, values, err);
    PQclear(result);
    return result != NULL;
}

const char *tl_postgres_text(uint64_t number, char text[TL_POSTGRES_TEXT])
{
    snprintf(text, TL_POSTGRES_TEXT, "%" PRIu64, number);
    return text;
}

uint64_t tl_postgres_number(const PGresult *rows, int row, int column)
{
    return strtoull(PQgetvalue(rows, row, column), NULL, 10);
}

bool tl_postgres_copy(struct tl_postgres *postgres, const char *sql, const char *bytes,
                      size_t length, struct tl_error *err)
{
    if (!tl_postgres_do(postgres, sql, 0, NULL, err))
        return false;
    for (size_t at = 0; at < length; at += COPY_PART) {
        int part = (int)(length - at < COPY_PART ? length - at : COPY_PART);
        if (PQputCopyData(postgres->connection, bytes + at, part) != 1)
            return lose(postgres, NULL, err);
        if (!wait(postgres, false, err))
            return false;
    }
    if (PQputCopyEnd(postgres->connection, NULL) != 1)
        return lose(postgres, NULL, err);
    PGresult *result = receive(postgres, err);
    PQclear(result);
    return result != NULL;
}

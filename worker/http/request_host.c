/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "worker/http/request_host.h"

/* This much of a body that is too large is read and dropped, so that the client can read why. */
enum { DROPPED_MAX = 1024 * 1024 };

/* The id that the client sent, if it is valid, or a new one. */
static void make_id(struct tl_request *request)
{
    static const char digits[] = "0123456789abcdef";
    const char *given = tl_request_header(request, "X-Request-Id");
    size_t n = 0;
    while (given != NULL && n <= TL_REQUEST_ID_MAX &&
           (isalnum((unsigned char)given[n]) || (given[n] != '\0' && strchr("._-", given[n]))))
        n++;
    if (n > 0 && n <= TL_REQUEST_ID_MAX && given[n] == '\0') {
        memcpy(request->id, given, n + 1);
        return;
    }
    /* splitmix64 (G. Steele et al., 2014): ids need to differ, not to be secret. */
    uint64_t number = (request->host->id_random += UINT64_C(0x9E3779B97F4A7C15));
    number = (number ^ (number >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94D049BB133111EB);
    number ^= number >> 31;
    for (size_t i = 0; i < 16; i++, number >>= 4)
        request->id[i] = digits[number & 15];
    request->id[16] = '\0';
}

struct tl_request *tl_request_new(struct tl_request_host *host, struct MHD_Connection *connection,
                                  const char *method, const char *path)
{
    struct tl_request *request = calloc(1, sizeof(*request));
    if (request == NULL)
        return NULL;
    request->host = host;
    request->connection = connection;
    request->method = method;
    request->path = path;
    make_id(request);
    host->requests++;
    return request;
}

void tl_request_free(struct tl_request *request)
{
    if (request->response != NULL)
        MHD_destroy_response(request->response);
    request->host->requests--;
    free(request->body);
    free(request);
}

struct MHD_Connection *tl_request_connection(const struct tl_request *request)
{
    return request->connection;
}

bool tl_request_add_body(struct tl_request *request, const char *bytes, size_t n)
{
    if (request->too_large || n > request->host->max_body - request->body_length) {
        request->too_large = true;
        request->dropped += n;
        return request->dropped <= DROPPED_MAX;
    }
    if (request->body_length + n + 1 > request->body_capacity) {
        size_t capacity = 2 * (request->body_length + n + 1);
        char *body = realloc(request->body, capacity);
        if (body == NULL)
            return false;
        request->body = body;
        request->body_capacity = capacity;
    }
    memcpy(request->body + request->body_length, bytes, n);
    request->body_length += n;
    request->body[request->body_length] = '\0';
    return true;
}

bool tl_request_declares_too_much(struct tl_request *request)
{
    const char *declared = tl_request_header(request, "Content-Length");
    request->too_large = declared != NULL && strtoull(declared, NULL, 10) > request->host->max_body;
    return request->too_large;
}

void tl_request_close_after(struct tl_request *request)
{
    request->last = true;
}

bool tl_request_too_large(const struct tl_request *request)
{
    return request->too_large;
}

bool tl_request_complete(struct tl_request *request)
{
    bool was_complete = request->complete;
    request->complete = true;
    return was_complete;
}

bool tl_request_answered(const struct tl_request *request)
{
    return request->answered;
}

enum MHD_Result tl_request_deliver(struct tl_request *request)
{
    if (request->response == NULL)
        return MHD_NO; /* no memory for it, or the socket was taken over: the library lets go of the
                          connection */
    enum MHD_Result result =
        MHD_queue_response(request->connection, request->status, request->response);
    MHD_destroy_response(request->response);
    request->response = NULL;
    return result;
}

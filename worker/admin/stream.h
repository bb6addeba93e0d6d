/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of an answer that is made while it is sent. One thread writes, the listener's thread
 * reads; between the two is a buffer. While it is empty the connection is suspended. Thread-safe.
 */
#ifndef TL_ADMIN_STREAM_H
#define TL_ADMIN_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include <microhttpd.h>

struct tl_admin_stream;

/* What the writer wants to know; both are called on the listener's thread, with nothing locked. */
struct tl_admin_stream_writer {
    void *context;
    void (*drained)(void *context); /* little is left in the buffer; may be NULL */
    void (*closed)(void *context);  /* nobody reads any more; the last call */
};

/* NULL when out of memory. The writer has it, and so has the response. */
struct tl_admin_stream *tl_admin_stream_new(const struct tl_admin_stream_writer *writer);
/* The writer gives it up. */
void tl_admin_stream_release(struct tl_admin_stream **stream);

/* Appends, however much is in the buffer. False when out of memory: then the stream is broken. What
 * comes after the end, or when nobody reads, is dropped. */
bool tl_admin_stream_write(struct tl_admin_stream *stream, const char *bytes, size_t length);
/* Nothing more comes. broken: the reader must not take what it has for the whole. */
void tl_admin_stream_end(struct tl_admin_stream *stream, bool broken);
/* Bytes that were not read yet. */
size_t tl_admin_stream_left(struct tl_admin_stream *stream);

/* On the listener's thread: the response with this body, once; NULL when out of memory, and then
 * the stream is closed. Headers are up to the caller. */
struct MHD_Response *tl_admin_stream_response(struct tl_admin_stream *stream,
                                              struct MHD_Connection *connection);
/* On the listener's thread, instead: there will be no response. NULL allowed. */
void tl_admin_stream_abandon(struct tl_admin_stream **stream);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One server-sent events connection: a socket of its own on the loop, taken over from the HTTP
 * library once the request was read. An idle one costs the structs here and the kernel's socket,
 * nothing else.
 *
 * At most one event is kept unsent. The sender calls tl_stream_ready first and writes the present
 * state. So a slow reader uses bounded memory, and misses steps instead of lagging behind.
 */
#ifndef TL_STREAM_H
#define TL_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

struct tl_stream;

/* The other side closed, or the connection broke, or a send failed: called once, from the loop,
 * never from within tl_stream_send. The stream is to be closed. */
typedef void tl_stream_broken(void *context);

/* Takes the socket over (also on failure: then it is closed). NULL when out of memory. */
struct tl_stream *tl_stream_open(uv_loop_t *loop, int fd, tl_stream_broken *broken, void *context);
/* Closes the socket; the struct is freed by the loop's next turn. NULL allowed; clears the caller's
 * pointer. */
void tl_stream_close(struct tl_stream **stream);

/* Has everything sent so far been taken by the kernel? */
bool tl_stream_ready(const struct tl_stream *stream);
/* Sends bytes, keeping what the kernel does not take now. Only when ready. False when the
 * connection is broken or memory ran out: close it. */
bool tl_stream_send(struct tl_stream *stream, const void *bytes, size_t length);

#endif

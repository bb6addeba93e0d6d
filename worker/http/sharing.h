/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session, one visitor: notices a session whose checks come from several clients in turn, and
 * one that is checked faster than a person can.
 *
 * A client is a network (an IPv4 /24 or an IPv6 /48) with an agent (User-Agent). Two devices behind
 * one network count as one client; so do an IPv4 and an IPv6 network with the same agent, because a
 * browser may use both. A phone that changes its network is another client from then on, which is
 * normal. What is not: the earlier client comes back, and that four times within a minute.
 *
 * The table is in shared memory, for all processes of a worker, without locks, so that a process
 * can be killed anywhere in it. Two processes that write one entry at once may lose an observation.
 * It has a fixed size: when it is full, the session not checked for the longest time is forgotten.
 */
#ifndef TL_SHARING_H
#define TL_SHARING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/net.h"

struct tl_sharing;

/* Must be made before forking. NULL with TL_ERR_SYSTEM. */
struct tl_sharing *tl_sharing_new(struct tl_error *err);
void tl_sharing_free(struct tl_sharing **sharing); /* NULL allowed */

/* What one check showed. */
struct tl_sharing_sight {
    bool shared;  /* several clients use the session in turn */
    bool newer;   /* this client came after another one that still uses it */
    bool noticed; /* `shared` is new: once a minute for each session */
    bool fast;    /* more checks than a person causes: once in ten seconds for each session */
};

/* Notes a check of the session at this place of this queue. agent: NULL is "". now_ms: local
 * monotonic time. */
struct tl_sharing_sight tl_sharing_see(struct tl_sharing *sharing, const char *queue,
                                       uint64_t generation, uint64_t place,
                                       const struct tl_address *address, const char *agent,
                                       int64_t now_ms);

#endif

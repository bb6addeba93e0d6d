/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that other web sites make a browser send. A page of a foreign site cannot read our
 * answers, as nothing here allows it to; but it can send requests, with our cookie if the browser
 * takes it for the same site, and under a host name of its own that it lets point to us.
 */
#ifndef TL_ADMIN_ORIGIN_H
#define TL_ADMIN_ORIGIN_H

#include <stdbool.h>

#include "worker/admin/head.h"

/* Is the host of the request one under which browsers may come: an IP address, localhost, or that
 * of public_url ("": none)? Any other name may be one that a foreign site lets point to us. */
bool tl_admin_host_allowed(const struct tl_admin_head *head, const char *public_url);
/* Is it a loopback address, or localhost? */
bool tl_admin_host_loopback(const struct tl_admin_head *head);
/* Did a page of ours send it, or no page at all, as far as the browser says? */
bool tl_admin_origin_own(const struct tl_admin_head *head, const char *public_url);

#endif

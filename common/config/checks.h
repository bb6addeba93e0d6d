/* SPDX-License-Identifier: Apache-2.0 */
/* What a text must look like beyond its length, for the rows of the tables of settings. Each sets
 * TL_ERR_INVALID with a sentence that says what is wrong. */
#ifndef TL_CONFIG_CHECKS_H
#define TL_CONFIG_CHECKS_H

#include <stdbool.h>

#include "common/base/error.h"

/* An address that a browser may be sent to; "" passes. */
bool tl_check_url(const char *value, struct tl_error *err);
/* One to which paths are appended. */
bool tl_check_public_url(const char *value, struct tl_error *err);
bool tl_check_admin_url(const char *value, struct tl_error *err);    /* likewise; "" passes */
bool tl_check_redis_url(const char *value, struct tl_error *err);    /* "" passes */
bool tl_check_postgres_url(const char *value, struct tl_error *err); /* "" passes */
bool tl_check_networks(const char *value, struct tl_error *err);
/* One that programs send secrets to, or pages load a script from: https, or http on this machine
 * (127.0.0.1, [::1], localhost). "" passes. */
bool tl_check_service_url(const char *value, struct tl_error *err);
/* An address to which a program posts: https:// or http://, without fragment; "" passes. */
bool tl_check_webhook_url(const char *value, struct tl_error *err);
/* Does it lead to this machine? Then no proxy of the environment is asked for it. */
bool tl_url_is_local(const char *url);
/* Is it https, or http to this machine or one of these hosts, separated by spaces? */
bool tl_url_is_protected(const char *url, const char *http_hosts);
/* A time zone of TL_ZONE_FOLDER, if this machine has that; "" passes. */
#define TL_ZONE_FOLDER "/usr/share/zoneinfo"
bool tl_check_timezone(const char *value, struct tl_error *err);
/* Of the keys in the store. */
bool tl_check_prefix(const char *value, struct tl_error *err);

#endif

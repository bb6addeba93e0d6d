/* SPDX-License-Identifier: Apache-2.0 */
/* The notifier: tells the hooks of the configuration what happens to queues. */
#ifndef TL_NOTIFIER_H
#define TL_NOTIFIER_H

#include "common/role/role.h"

extern const struct tl_role tl_notifier;

#endif

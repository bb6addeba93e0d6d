/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the archive, in versions that only go forward (schema/). */
#ifndef TL_MIGRATE_H
#define TL_MIGRATE_H

#include "common/archive/postgres.h"

/* The version that this program needs. */
unsigned tl_migrate_wanted(void);
/* The version of the tables; 0: there are none. */
bool tl_migrate_version(struct tl_postgres *postgres, unsigned *version, struct tl_error *err);
/* Makes the tables, or brings them up to the version that this program needs, in one transaction:
 * of several at once, one does it. *before: the version that was there. TL_ERR_INVALID when it is
 * newer. */
bool tl_migrate(struct tl_postgres *postgres, unsigned *before, struct tl_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a trail, as https://c2sp.org/tlog-tiles makes them. */
#ifndef TL_TRAIL_PATH_H
#define TL_TRAIL_PATH_H

#include "worker/archive/job.h"

/*
 * Reads what stands behind "/trail/":
 *
 *   [GENERATION/]checkpoint   [GENERATION/]tile/LEVEL/N[.p/WIDTH]
 * [GENERATION/]tile/entries/N[.p/WIDTH]
 *
 * N is its digits in groups of three, all but the last with an x before it: x001/x234/067. Fills in
 * kind, generation (0: none is named) and tile. False: it is none of these, or not written so.
 */
bool tl_trail_path_read(const char *path, struct tl_archive_job *job);

#endif

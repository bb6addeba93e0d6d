/* SPDX-License-Identifier: Apache-2.0 */
/* Durations in ms, for the bounds in the tables of settings. */
#ifndef TL_CONFIG_DURATIONS_H
#define TL_CONFIG_DURATIONS_H

#include <stdint.h>

#define MILLISECONDS(n) (n)
#define SECONDS(n)      INT64_C(n##000)
#define MINUTES(n)      (SECONDS(60) * (n))
#define DAYS(n)         (MINUTES(1440) * (n))

#endif

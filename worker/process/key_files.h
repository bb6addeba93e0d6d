/* SPDX-License-Identifier: Apache-2.0 */
/* May missing key files be made at a start? Visitors lose their tickets and passes with the keys,
 * so keys are made only while no visitor is in a queue. */
#ifndef TL_KEY_FILES_H
#define TL_KEY_FILES_H

#include "common/base/error.h"
#include "common/config/config.h"

enum tl_key_files {
    TL_KEY_FILES_FINE,    /* they exist, or may be made */
    TL_KEY_FILES_LOST,    /* one is missing, and a queue has visitors */
    TL_KEY_FILES_UNKNOWN, /* one is missing, and the store does not answer */
};

/* Looks for the files with the keys of tickets and passes, and asks the store when one is missing.
 * err says what to do, unless they are fine. */
enum tl_key_files tl_key_files_look(const struct tl_config *config, struct tl_error *err);

#endif

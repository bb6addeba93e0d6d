/* SPDX-License-Identifier: Apache-2.0 */
/* What the operands of a command are, by their names in its usage line: for the completions. */
#ifndef TL_CTL_OPERANDS_H
#define TL_CTL_OPERANDS_H

#include "ctl/shell/command.h"

enum tl_operand {
    TL_OPERAND_NONE,  /* there is none at this place */
    TL_OPERAND_OTHER, /* anything */
    TL_OPERAND_QUEUE,
    TL_OPERAND_ASSIGNMENT, /* NAME=VALUE: a setting of a queue */
    TL_OPERAND_FILE,
    TL_OPERAND_FOLDER,
    TL_OPERAND_FORMAT,
};

/* What stands for a name such as "QUEUE". */
enum tl_operand tl_operand_of(const char *name, size_t length);
/* The i-th operand (from 0) of a usage line such as "QUEUE NAME=VALUE...". */
enum tl_operand tl_operand_at(const char *words, int i);

#endif

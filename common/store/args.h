/* SPDX-License-Identifier: Apache-2.0 */
/* A Redis command under construction: binary-safe arguments, copied into one growing buffer. */
#ifndef TL_ARGS_H
#define TL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_args {
    char *bytes;
    size_t n_bytes, bytes_capacity;
    size_t *lengths; /* of each argument */
    size_t n, lengths_capacity;
    bool failed; /* memory ran out; sending the command reports it */
};

/* A zeroed struct is an empty command. */
void tl_args_free(struct tl_args *args);
/* Forgets the arguments, keeps the memory. */
void tl_args_reset(struct tl_args *args);
void tl_args_str(struct tl_args *args, const char *text);
void tl_args_bin(struct tl_args *args, const void *bytes, size_t length);
void tl_args_uint(struct tl_args *args, uint64_t value);
void tl_args_int(struct tl_args *args, int64_t value);
/* Several strings at once; the last must be NULL. */
void tl_args_strs(struct tl_args *args, const char *first, ...) __attribute__((sentinel));

#endif

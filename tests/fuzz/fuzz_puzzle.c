/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Solutions of puzzles from outside. The first byte chooses: 0 checks the rest as a solution; 1
 * signs a puzzle of 1 bit, appends the rest to its text and checks it, so that the numbers of the
 * parts are decoded, too; 2 changes one byte of a signed wait, and expects it to be refused.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/auth/keyring.h"
#include "common/auth/puzzle.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { NOW = 1795000000 };

static struct tl_keyring *load(void)
{
    static const char key[] =
        "0000000a 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
    int fd = memfd_create("keys", MFD_CLOEXEC);
    char path[32];
    if (fd < 0 || fchmod(fd, 0600) != 0 || write(fd, key, sizeof(key) - 1) < 0)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct tl_keyring *keyring = tl_keyring_load(path, false, NULL);
    if (keyring == NULL)
        abort();
    close(fd);
    return keyring;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct tl_keyring *keyring;
    const struct tl_prefix prefix = {.bits = 0};
    const struct tl_puzzle_scope scope = {.queue = "q", .prefix = &prefix};
    struct tl_puzzle_solved solved;
    char text[TL_PUZZLE_SOLUTION_MAX + 64];
    if (keyring == NULL)
        keyring = load();
    if (length < 1 || length > TL_PUZZLE_SOLUTION_MAX)
        return 0;
    enum tl_puzzle_kind kind = bytes[0] == 2 ? TL_PUZZLE_WAIT : TL_PUZZLE_WORK;
    tl_puzzle_make(keyring, &scope, kind, 1, NOW, text);
    size_t n = strlen(text);
    if (bytes[0] == 0) {
        if (tl_puzzle_check(keyring, &scope, (const char *)bytes + 1, length - 1, NOW, &solved) ==
            TL_PUZZLE_SOLVED)
            abort();
    } else if (bytes[0] == 1) {
        memcpy(text + n, bytes + 1, length - 1);
        (void)tl_puzzle_check(keyring, &scope, text, n + length - 1, NOW, &solved);
    } else if (bytes[0] == 2 && length == 3) {
        text[bytes[1] % n] ^= (char)(bytes[2] | 1);
        if (tl_puzzle_check(keyring, &scope, text, n, NOW + 1, &solved) == TL_PUZZLE_SOLVED)
            abort();
    }
    return 0;
}

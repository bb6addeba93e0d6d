/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets and key files from outside. The first byte chooses: 0 reads the rest as a ticket's text,
 * 1 as a key file; 2 signs the rest as a visitor, expects the ticket to verify, and a change of one
 * byte of it to be refused; 3 reads the rest as a code that hands a place over; 4 signs such a code
 * and expects that it is no ticket.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/auth/keyring.h"
#include "common/auth/ticket.h"
#include "common/wire/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static struct tl_keyring *load(const void *bytes, size_t length)
{
    int fd = memfd_create("keys", MFD_CLOEXEC);
    char path[32];
    if (fd < 0 || fchmod(fd, 0600) != 0 || write(fd, bytes, length) != (ssize_t)length)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct tl_keyring *keyring = tl_keyring_load(path, false, NULL);
    close(fd);
    return keyring;
}

static void sign_and_change(const struct tl_keyring *keyring, const uint8_t *bytes, size_t length)
{
    if (length < 3 || !tl_visitor_valid((const char *)bytes + 2, length - 2))
        return;
    bool numbered = bytes[1] != 0;
    struct tl_ticket ticket = {.generation = numbered ? bytes[0] : 0,
                               .invite = numbered ? 0 : bytes[0],
                               .place = bytes[1],
                               .front = bytes[0] % (bytes[1] + 1U)};
    struct tl_ticket read;
    char text[TL_TICKET_MAX];
    memcpy(ticket.visitor, bytes + 2, length - 2);
    tl_ticket_sign(keyring, "q", &ticket, text);
    if (!tl_ticket_verify(keyring, "q", text, strlen(text), &read) ||
        strcmp(read.visitor, ticket.visitor) != 0 || read.generation != ticket.generation ||
        read.invite != ticket.invite || read.front > ticket.front)
        abort();
    text[bytes[0] % strlen(text)] ^= (char)(bytes[1] | 1);
    if (tl_ticket_verify(keyring, "q", text, strlen(text), &read))
        abort();
}

static void sign_code(const struct tl_keyring *keyring, const uint8_t *bytes, size_t length)
{
    if (length < 3 || !tl_visitor_valid((const char *)bytes + 2, length - 2))
        return;
    struct tl_ticket ticket = {.generation = bytes[0],
                               .place = bytes[1] + 1U,
                               .issued = bytes[0],
                               .serial = bytes[1] + 1U};
    struct tl_ticket read;
    char text[TL_TICKET_MAX];
    memcpy(ticket.visitor, bytes + 2, length - 2);
    tl_ticket_sign_code(keyring, "q", &ticket, text);
    if (!tl_ticket_verify_code(keyring, "q", text, strlen(text), &read) ||
        strcmp(read.visitor, ticket.visitor) != 0 || read.serial != ticket.serial ||
        read.issued != ticket.issued || tl_ticket_verify(keyring, "q", text, strlen(text), &read))
        abort();
    tl_ticket_sign(keyring, "q", &ticket, text);
    if (!tl_ticket_verify(keyring, "q", text, strlen(text), &read) ||
        read.serial != ticket.serial ||
        tl_ticket_verify_code(keyring, "q", text, strlen(text), &read))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const char key[] =
        "0000000a 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
    static struct tl_keyring *keyring;
    if (keyring == NULL)
        keyring = load(key, sizeof(key) - 1);
    if (keyring == NULL)
        abort();
    if (length == 0)
        return 0;
    struct tl_ticket ticket;
    if (bytes[0] == 0) {
        (void)tl_ticket_verify(keyring, "concert", (const char *)bytes + 1, length - 1, &ticket);
    } else if (bytes[0] == 1) {
        struct tl_keyring *other = load(bytes + 1, length - 1);
        tl_keyring_free(&other);
    } else if (bytes[0] == 2) {
        sign_and_change(keyring, bytes + 1, length - 1);
    } else if (bytes[0] == 3) {
        (void)tl_ticket_verify_code(keyring, "concert", (const char *)bytes + 1, length - 1,
                                    &ticket);
    } else if (bytes[0] == 4) {
        sign_code(keyring, bytes + 1, length - 1);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "common/auth/hex.h"
#include "common/auth/secret_file.h"
#include "common/base/log.h"

enum { FILE_BYTES_MAX = 64 * 1024, PATH_BYTES_MAX = 512, HEADING_BYTES_MAX = 512 };

static bool is_ready(struct tl_error *err)
{
    return sodium_init() >= 0 ||
           tl_error_set(err, TL_ERR_SYSTEM, "libsodium cannot be initialised");
}

static char *read_whole(int fd, const char *path, size_t *length, struct tl_error *err)
{
    char *bytes = malloc(FILE_BYTES_MAX + 1);
    if (bytes == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "%s: no memory to read it", path);
        return NULL;
    }
    size_t n = 0;
    ssize_t got;
    do {
        got = read(fd, bytes + n, FILE_BYTES_MAX - n);
        if (got > 0)
            n += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    if (got < 0) {
        tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot read: %s", path, strerror(errno));
        tl_secret_free(&bytes, n);
        return NULL;
    }
    bytes[n] = '\0';
    *length = n;
    return bytes;
}

char *tl_secret_read(const char *path, size_t *length, bool *missing, struct tl_error *err)
{
    if (missing != NULL)
        *missing = false;
    if (!is_ready(err))
        return NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        if (missing != NULL)
            *missing = errno == ENOENT;
        tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot open: %s", path, strerror(errno));
        return NULL;
    }
    struct stat info;
    char *bytes = NULL;
    if (fstat(fd, &info) != 0)
        tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot stat: %s", path, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        tl_error_set(err, TL_ERR_INVALID, "%s: not a regular file", path);
    else if ((info.st_mode & (S_IRWXO | S_IWGRP)) != 0)
        tl_error_set(
            err, TL_ERR_INVALID,
            "%s: mode %04o gives others access to a secret: chmod 600 it (640 if its group "
            "needs it)",
            path, (unsigned)(info.st_mode & 07777));
    else if (info.st_size > FILE_BYTES_MAX)
        tl_error_set(err, TL_ERR_INVALID, "%s: larger than %d KiB", path, FILE_BYTES_MAX / 1024);
    else
        bytes = read_whole(fd, path, length, err);
    close(fd);
    return bytes;
}

void tl_secret_free(char **bytes, size_t length)
{
    if (*bytes == NULL)
        return;
    sodium_memzero(*bytes, length);
    free(*bytes);
    *bytes = NULL;
}

/* ---- creation ---- */

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return fsync(fd) == 0;
}

/* Root makes files for others: gives this one to the owner of the folder. */
static bool hand_over(int fd, const char *folder)
{
    struct stat owner;
    return geteuid() != 0 ||
           (stat(folder, &owner) == 0 && fchown(fd, owner.st_uid, owner.st_gid) == 0);
}

bool tl_secret_create(const char *path, const char *bytes, size_t length, const char *what,
                      struct tl_error *err)
{
    if (access(path, F_OK) == 0)
        return true;
    char copy[PATH_BYTES_MAX];
    char temporary[PATH_BYTES_MAX];
    if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy) ||
        snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
        return tl_error_set(err, TL_ERR_INVALID, "%s: path too long", path);
    const char *folder = dirname(copy);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot make the folder %s: %s", path, folder,
                            strerror(errno));
    int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot create: %s", path, strerror(errno));
    /* A link appears whole or not at all, and never replaces what another process made first. */
    bool made = hand_over(fd, folder) && write_all(fd, bytes, length) && link(temporary, path) == 0;
    int reason = made ? 0 : errno;
    close(fd);
    unlink(temporary);
    if (!made && reason != EEXIST)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot create: %s", path, strerror(reason));
    if (made)
        tl_info("%s did not exist: made it, with %s", path, what);
    return true;
}

bool tl_secret_create_key(const char *path, const char *heading, const char *what,
                          struct tl_error *err)
{
    unsigned char key[TL_SECRET_KEY_BYTES];
    char digits[2 * TL_SECRET_KEY_BYTES + 1];
    char text[HEADING_BYTES_MAX + sizeof(digits) + 1];
    if (!is_ready(err))
        return false;
    randombytes_buf(key, sizeof(key));
    tl_hex_format(key, sizeof(key), digits);
    int length = snprintf(text, sizeof(text), "%s%s\n", heading, digits);
    bool made = length < (int)sizeof(text)
                    ? tl_secret_create(path, text, (size_t)length, what, err)
                    : tl_error_set(err, TL_ERR_INVALID, "%s: the heading is too long", path);
    sodium_memzero(key, sizeof(key));
    sodium_memzero(digits, sizeof(digits));
    sodium_memzero(text, sizeof(text));
    return made;
}

bool tl_secret_load_key(const char *path, const char *what, const char *comment,
                        unsigned char key[TL_SECRET_KEY_BYTES], struct tl_error *err)
{
    size_t length;
    if (comment != NULL && !tl_secret_create_key(path, comment, what, err))
        return false;
    char *bytes = tl_secret_read(path, &length, NULL, err);
    if (bytes == NULL)
        return false;
    const char *line = tl_secret_only_line(bytes);
    bool ok = line != NULL && tl_hex_parse(line, strlen(line), key, TL_SECRET_KEY_BYTES);
    tl_secret_free(&bytes, length);
    return ok || tl_error_set(err, TL_ERR_INVALID,
                              "%s: expected one line of %d hex digits, %s; restore the file "
                              "from a backup",
                              path, 2 * TL_SECRET_KEY_BYTES, what);
}

/* ---- adding a line ---- */

/* The bytes of the file with the line behind them; freed with tl_secret_free. */
static char *with_line(const char *bytes, size_t length, const char *line, size_t *total)
{
    bool ended = length == 0 || bytes[length - 1] == '\n';
    *total = length + (ended ? 0 : 1) + strlen(line) + 1;
    char *all = malloc(*total + 1);
    if (all == NULL)
        return NULL;
    memcpy(all, bytes, length);
    snprintf(all + length, *total + 1 - length, "%s%s\n", ended ? "" : "\n", line);
    return all;
}

/* Replaces the file by one with these bytes, of the same owner and mode. */
static bool replace(const char *path, const char *bytes, size_t length, struct tl_error *err)
{
    char temporary[PATH_BYTES_MAX];
    struct stat old;
    if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
        return tl_error_set(err, TL_ERR_INVALID, "%s: path too long", path);
    int fd = stat(path, &old) == 0 ? mkostemp(temporary, O_CLOEXEC) : -1;
    if (fd < 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot add a line: %s", path, strerror(errno));
    bool owned = (old.st_uid == geteuid() && old.st_gid == getegid()) ||
                 fchown(fd, old.st_uid, old.st_gid) == 0;
    bool ok = owned && fchmod(fd, old.st_mode & 07777) == 0 && write_all(fd, bytes, length) &&
              rename(temporary, path) == 0;
    int reason = errno;
    close(fd);
    if (ok)
        return true;
    unlink(temporary);
    return tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot add a line: %s", path, strerror(reason));
}

bool tl_secret_append(const char *path, const char *line, const char *what, struct tl_error *err)
{
    size_t length = 0, total;
    bool missing = false;
    char *old = tl_secret_read(path, &length, &missing, err);
    if (old == NULL && !missing)
        return false;
    char *all = with_line(old != NULL ? old : "", length, line, &total);
    tl_secret_free(&old, length);
    if (all == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %s", path);
    bool ok =
        missing ? tl_secret_create(path, all, total, what, err) : replace(path, all, total, err);
    tl_secret_free(&all, total);
    return ok;
}

/* ---- lines ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

bool tl_secret_line(char **rest, char **line, unsigned *number)
{
    bool empty = true;
    while (empty && **rest != '\0') {
        char *start = *rest;
        char *end = start + strcspn(start, "\n");
        *rest = *end == '\n' ? end + 1 : end;
        *end = '\0';
        end = start + strcspn(start, "#");
        while (end > start && is_blank(end[-1]))
            end--;
        *end = '\0';
        while (is_blank(*start))
            start++;
        *line = start;
        empty = *start == '\0';
        if (number != NULL)
            (*number)++;
    }
    return !empty;
}

const char *tl_secret_only_line(char *text)
{
    char *line = NULL, *other;
    bool is_only = tl_secret_line(&text, &line, NULL) && !tl_secret_line(&text, &other, NULL);
    return is_only ? line : NULL;
}

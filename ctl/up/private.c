/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/up/up.h"

#define LOCK_NAME "lock"

bool tl_find_program(const char *name, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    if (folders == NULL || folders[0] == '\0')
        folders = "/usr/local/bin:/usr/bin:/bin";
    while (*folders != '\0') {
        int length = (int)strcspn(folders, ":");
        int written = snprintf(path, PATH_MAX, "%.*s/%s", length, folders, name);
        if (length > 0 && written < PATH_MAX && access(path, X_OK) == 0)
            return true;
        folders += length + (folders[length] == ':' ? 1 : 0);
    }
    return false;
}

static bool make_folder(const char *data, char folder[PATH_MAX], struct tl_error *err)
{
    struct stat status;
    if (mkdir(data, 0700) != 0 && errno != EEXIST)
        return tl_error_set(err, TL_ERR_SYSTEM, "data folder %s: %s", data, strerror(errno));
    if (realpath(data, folder) == NULL || stat(folder, &status) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "data folder %s: %s", data, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return tl_error_set(err, TL_ERR_INVALID, "data folder %s: is not a folder", data);
    if ((status.st_mode & 022) != 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "data folder %s: other users may write to it; run `chmod 700 %s`", data,
                            data);
    return true;
}

/* Joins folder and name. */
static bool join_path(const char *folder, const char *name, char path[PATH_MAX],
                      struct tl_error *err)
{
    int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= PATH_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "data folder %s: the path is too long", folder);
    return true;
}

static bool lock_folder(struct tl_data_folder *folder, struct tl_error *err)
{
    char path[PATH_MAX];
    if (!join_path(folder->path, LOCK_NAME, path, err))
        return false;
    folder->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (folder->lock < 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    if (flock(folder->lock, LOCK_EX | LOCK_NB) == 0)
        return true;
    int flock_errno = errno;
    tl_data_folder_close(folder);
    if (flock_errno != EWOULDBLOCK)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(flock_errno));
    return tl_error_set(
        err, TL_ERR_INVALID,
        "data folder %s: another `tellerline up` already runs on it, or its servers are still "
        "stopping; stop it, or choose another folder with --data DIR",
        folder->path);
}

bool tl_data_folder_open(struct tl_data_folder *folder, struct tl_error *err)
{
    /* The folder may be open for the user of PostgreSQL: what is in it must not be. */
    (void)umask(077);
    return folder->lock >= 0 ||
           (make_folder(folder->given, folder->path, err) && lock_folder(folder, err));
}

void tl_data_folder_close(struct tl_data_folder *folder)
{
    if (folder->lock >= 0)
        close(folder->lock);
    folder->lock = -1;
}

/* Chooses the path of the socket of this name. "" when that cannot be used: it is too long, or
 * holds what means something else in an address. */
static void choose_socket(const char *in, const char *name, char path[TL_SOCKET_PATH_MAX])
{
    int length = snprintf(path, TL_SOCKET_PATH_MAX, "%s/%s", in, name);
    if (length < 0 || length >= TL_SOCKET_PATH_MAX || strpbrk(path, "?&=%,") != NULL)
        path[0] = '\0';
}

/* Makes a folder with a short path for the socket. */
static bool make_socket_folder(struct tl_private_server *server, const char *name,
                               struct tl_error *err)
{
    const char *runtime = server->other_user ? NULL : getenv("XDG_RUNTIME_DIR");
    const char *const places[] = {runtime != NULL ? runtime : "", "/tmp"};
    for (size_t i = 0; i < 2; i++) {
        int length = snprintf(server->socket_folder, sizeof(server->socket_folder),
                              "%s/tellerline-XXXXXX", places[i]);
        if (places[i][0] != '/' || length < 0 || (size_t)length >= sizeof(server->socket_folder))
            continue;
        if (mkdtemp(server->socket_folder) == NULL)
            continue;
        choose_socket(server->socket_folder, name, server->socket);
        if (server->socket[0] != '\0')
            return true;
        rmdir(server->socket_folder);
    }
    server->socket_folder[0] = '\0';
    return tl_error_set(
        err, TL_ERR_SYSTEM,
        "data folder %s: the path is too long for a socket, and no folder for the socket could be "
        "made in /tmp; choose a shorter path with --data DIR",
        server->folder->path);
}

bool tl_private_server_socket(struct tl_private_server *server, const char *name,
                              struct tl_error *err)
{
    choose_socket(server->data, name, server->socket);
    return server->socket[0] != '\0' || make_socket_folder(server, name, err);
}

bool tl_private_server_publish(const struct tl_private_server *server, struct tl_error *err)
{
    char path[PATH_MAX];
    if (!join_path(server->folder->path, server->url_file, path, err))
        return false;
    FILE *file = fopen(path, "we");
    bool ok = file != NULL && fprintf(file, "%s\n", server->url) > 0;
    if (file != NULL && fclose(file) != 0)
        ok = false;
    return ok || tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
}

void tl_private_server_release(struct tl_private_server *server)
{
    char path[PATH_MAX];
    if (server->folder == NULL)
        return;
    if (join_path(server->folder->path, server->url_file, path, NULL))
        unlink(path);
    if (server->socket_folder[0] != '\0') {
        unlink(server->socket);
        rmdir(server->socket_folder);
    }
    server->folder = NULL;
}

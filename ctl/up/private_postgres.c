/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/archive/postgres.h"

#include "ctl/up/up.h"

#define SOCKET_NAME ".s.PGSQL.5432" /* PostgreSQL chooses it */

/* Makes the database at the first start, in one step, and becomes the server. A database that an
 * older release made needs that release, which Debian keeps at an upgrade. */
static const char script[] =
    "trap exit INT TERM\n"
    "bin=$1\n"
    "cd \"$2\" 2>/dev/null || {\n"
    "    echo \"the user $(id -un), as whom PostgreSQL runs, cannot reach $2; choose another folder"
    " with --data DIR\"\n"
    "    exit 1\n"
    "}\n"
    "if [ ! -d data ]; then\n"
    "    rm -rf new\n"
    "    \"$bin/initdb\" -D new -U tellerline -A trust -E UTF8 --no-locale >log 2>&1 || {\n"
    "        cat log\n"
    "        exit 1\n"
    "    }\n"
    "    mv new data\n"
    "fi\n"
    "own=/usr/lib/postgresql/$(cat data/PG_VERSION)/bin\n"
    "[ ! -x \"$own/postgres\" ] || bin=$own\n"
    "exec \"$bin/postgres\" -D data -p 5432 -c listen_addresses= -c log_min_messages=fatal"
    " -c unix_socket_permissions=0700 -c unix_socket_directories=\"${3%/*}\"\n";

/* Debian keeps the programs out of PATH, each release in a folder of its own: the newest. */
static bool find_initdb(char path[PATH_MAX])
{
    glob_t found;
    bool ok = glob("/usr/lib/postgresql/[1-9][0-9]/bin/initdb", 0, NULL, &found) == 0;
    if (ok)
        snprintf(path, PATH_MAX, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return ok || tl_find_program("initdb", path);
}

/* Takes from others what only the mode of the folder has kept from them until now, as the files of
 * a Redis that ran here before. */
static bool shut_files(const char *folder)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    bool ok = entries != NULL;
    while (ok && (entry = readdir(entries)) != NULL) {
        struct stat status;
        const int of = dirfd(entries);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(of, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (status.st_uid == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
            ok = fchmodat(of, entry->d_name, status.st_mode & 0700, 0) == 0;
    }
    if (entries != NULL)
        closedir(entries);
    return ok;
}

/* Lets the user `postgres` into a folder of root, but not see what else is in it. */
static bool let_in(const char *folder, const struct passwd *user, struct tl_error *err)
{
    struct stat status;
    return (stat(folder, &status) == 0 &&
            ((status.st_mode & 001) != 0 ||
             (shut_files(folder) && chown(folder, (uid_t)-1, user->pw_gid) == 0 &&
              chmod(folder, (status.st_mode & 0700) | 010) == 0))) ||
           tl_error_set(err, TL_ERR_SYSTEM, "data folder %s: %s", folder, strerror(errno));
}

/* Gives what PostgreSQL writes to its user, where we are root. */
static bool give_away(const struct tl_private_server *postgres, struct tl_error *err)
{
    const char *const folders[] = {postgres->data, postgres->socket_folder};
    if (geteuid() != 0)
        return true;
    const struct passwd *user = getpwnam("postgres");
    if (user == NULL)
        return tl_error_set(err, TL_ERR_INVALID,
                            "PostgreSQL refuses to run as root, and there is no user `postgres`; "
                            "run this as another user");
    for (size_t i = 0; i < 2; i++)
        if (folders[i][0] != '\0' && chown(folders[i], user->pw_uid, user->pw_gid) != 0)
            return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", folders[i], strerror(errno));
    return let_in(postgres->folder->path, user, err);
}

bool tl_private_postgres_prepare(struct tl_private_server *postgres, struct tl_data_folder *folder,
                                 struct tl_error *err)
{
    if (!find_initdb(postgres->program))
        return tl_error_set(err, TL_ERR_INVALID,
                            "--archive: PostgreSQL is not installed; run `apt-get install "
                            "postgresql`, or set archive.url to one that runs elsewhere");
    if (!tl_data_folder_open(folder, err))
        return false;
    postgres->folder = folder;
    postgres->other_user = geteuid() == 0;
    postgres->url_file = TL_POSTGRES_URL_FILE;
    int length = snprintf(postgres->data, sizeof(postgres->data), "%s/postgres", folder->path);
    if (length >= PATH_MAX || (mkdir(postgres->data, 0700) != 0 && errno != EEXIST))
        return tl_error_set(err, TL_ERR_SYSTEM, "data folder %s: %s", folder->path,
                            length >= PATH_MAX ? "the path is too long" : strerror(errno));
    if (!tl_private_server_socket(postgres, SOCKET_NAME, err) || !give_away(postgres, err))
        return false;
    *strrchr(postgres->program, '/') = '\0';
    snprintf(postgres->url, sizeof(postgres->url),
             "postgresql://tellerline@/postgres?host=%.*s&port=5432",
             (int)(strrchr(postgres->socket, '/') - postgres->socket), postgres->socket);
    return true;
}

void tl_private_postgres_argv(const struct tl_private_server *postgres,
                              const char *argv[TL_PROGRAM_ARGS_MAX])
{
    const char *const words[] = {
        "/usr/bin/setpriv", "--pdeathsig",     "INT",          "/bin/sh",        "-c", script,
        "postgres",         postgres->program, postgres->data, postgres->socket, NULL};
    const char *const drop[] = {"--reuid=postgres", "--regid=postgres", "--init-groups"};
    const size_t before = 3, n_drop = geteuid() == 0 ? 3 : 0;
    memcpy(argv, words, before * sizeof(words[0]));
    memcpy(argv + before, drop, n_drop * sizeof(drop[0]));
    memcpy(argv + before + n_drop, words + before, sizeof(words) - before * sizeof(words[0]));
}

bool tl_private_postgres_answers(const struct tl_private_server *postgres, struct tl_error *err)
{
    struct tl_postgres connection = {0};
    bool ok = tl_postgres_open(&connection, postgres->url, "tellerline", err);
    tl_postgres_close(&connection);
    return ok;
}

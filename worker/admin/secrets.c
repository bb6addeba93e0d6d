/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <sodium.h>

#include "common/base/log.h"
#include "worker/admin/secrets.h"

/* By which a file that changed is noticed. All zero: there is none. */
struct mark {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct tl_admin_secrets {
    const char *admin_path, *key_path;
    pthread_mutex_t mutex; /* for all that follows */
    struct mark admin_mark, key_mark;
    struct tl_admin_secrets_now now;
};

static struct mark look_at(const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return (struct mark){0};
    return (struct mark){found.st_dev, found.st_ino, found.st_size, found.st_ctim};
}

static bool is_same(const struct mark *a, const struct mark *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static void complain(const struct tl_error *err, const char *without)
{
    tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.error = err}, "%s", without);
}

static void read_admin(struct tl_admin_secrets *secrets)
{
    struct tl_error err = {0};
    sodium_memzero(&secrets->now.admin, sizeof(secrets->now.admin));
    if (secrets->admin_path[0] != '\0' &&
        !tl_admin_token_load(secrets->admin_path, &secrets->now.admin, &err)) {
        secrets->now.admin.found = false;
        complain(&err, "there is no admin token");
    }
}

static void read_key(struct tl_admin_secrets *secrets, bool exists)
{
    struct tl_error err = {0};
    sodium_memzero(&secrets->now.key, sizeof(secrets->now.key));
    secrets->now.has_key =
        exists && tl_token_key_load(secrets->key_path, false, &secrets->now.key, &err);
    if (exists && !secrets->now.has_key)
        complain(&err, "no token of an operator can be checked");
}

static void refresh(struct tl_admin_secrets *secrets)
{
    static const struct mark none = {0};
    const struct mark admin = look_at(secrets->admin_path), key = look_at(secrets->key_path);
    if (!is_same(&admin, &secrets->admin_mark))
        read_admin(secrets);
    if (!is_same(&key, &secrets->key_mark))
        read_key(secrets, !is_same(&key, &none));
    secrets->admin_mark = admin;
    secrets->key_mark = key;
}

void tl_admin_secrets_look(struct tl_admin_secrets *secrets, struct tl_admin_secrets_now *now)
{
    pthread_mutex_lock(&secrets->mutex);
    refresh(secrets);
    *now = secrets->now;
    pthread_mutex_unlock(&secrets->mutex);
}

/* At the first start. A folder that only others may write to has the files already, or gets none.
 */
static void make_missing(const struct tl_admin_secrets *secrets)
{
    struct tl_error err = {0};
    struct tl_token_key key = {0};
    bool made =
        (secrets->admin_path[0] == '\0' || tl_admin_token_create(secrets->admin_path, &err)) &&
        (secrets->key_path[0] == '\0' || tl_token_key_load(secrets->key_path, true, &key, &err));
    if (!made)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &err},
               "a secret of the admin API is missing");
    sodium_memzero(&key, sizeof(key));
}

struct tl_admin_secrets *tl_admin_secrets_new(const struct tl_config *config, struct tl_error *err)
{
    struct tl_admin_secrets *secrets = calloc(1, sizeof(*secrets));
    if (secrets == NULL || pthread_mutex_init(&secrets->mutex, NULL) != 0) {
        free(secrets);
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the secrets of the admin API");
        return NULL;
    }
    secrets->admin_path = config->secrets.admin_token;
    secrets->key_path = config->secrets.token_key;
    make_missing(secrets);
    refresh(secrets);
    return secrets;
}

void tl_admin_secrets_free(struct tl_admin_secrets **secrets)
{
    if (*secrets == NULL)
        return;
    pthread_mutex_destroy(&(*secrets)->mutex);
    sodium_memzero(&(*secrets)->now, sizeof((*secrets)->now));
    free(*secrets);
    *secrets = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/invite.h"
#include "common/auth/jwt.h"
#include "common/auth/jwt_keys.h"
#include "common/auth/secret_file.h"

#include "lab/memory.h"
#include "lab/visitors.h"

_Static_assert(TL_DOOR_BODY_MAX > TL_JWT_SIZE + sizeof("{\"invite\":\"\"}"), "an invite fits");

enum { INVITE_S = 600 };

struct tl_door {
    char *api_keys; /* bytes of the file, or NULL */
    size_t api_keys_length;
    const char *api_key; /* in them; NULL: none */
    struct tl_jwt_keys *invite_keys;
    int64_t store_s, at_ms; /* the store's clock, and ours at that time */
};

/* Reads a file of secrets, if one is named and there. False: it cannot be read. */
static bool read_secrets(const char *path, char **text, size_t *length, struct tl_error *err)
{
    bool missing = path[0] == '\0';
    struct tl_error problem = {0};
    *text = missing ? NULL : tl_secret_read(path, length, &missing, &problem);
    if (*text == NULL && !missing)
        *err = problem;
    return *text != NULL || missing;
}

/* The first key of secrets.api_keys, if there is one. */
static bool find_api_key(struct tl_door *door, const char *path, struct tl_error *err)
{
    if (!read_secrets(path, &door->api_keys, &door->api_keys_length, err))
        return false;
    char *rest = door->api_keys, *line;
    while (rest != NULL && door->api_key == NULL && tl_secret_line(&rest, &line, NULL)) {
        size_t name = strcspn(line, " \t");
        const char *key = line + name + strspn(line + name, " \t");
        if (key[0] != '\0')
            door->api_key = key;
    }
    return true;
}

static bool read_invite_keys(struct tl_door *door, const char *path, struct tl_error *err)
{
    size_t length = 0;
    char *text;
    if (!read_secrets(path, &text, &length, err) || text == NULL)
        return err->kind == TL_OK;
    door->invite_keys = tl_jwt_keys_parse(path, text, TL_JWT_VERIFY, err);
    tl_secret_free(&text, length);
    if (door->invite_keys == NULL)
        return false;
    (void)tl_jwt_keys_choose_signer(door->invite_keys, TL_JWT_HS256);
    return true;
}

struct tl_door *tl_door_new(const struct tl_config *config, struct tl_error *err)
{
    struct tl_door *door = tl_xalloc(1, sizeof(*door));
    bool ok = find_api_key(door, config->secrets.api_keys, err);
    if (ok && door->api_key == NULL)
        ok = read_invite_keys(door, config->secrets.invite_keys, err);
    if (!ok)
        tl_door_free(&door);
    return door;
}

void tl_door_free(struct tl_door **door)
{
    if (*door == NULL)
        return;
    tl_secret_free(&(*door)->api_keys, (*door)->api_keys_length);
    tl_jwt_keys_free(&(*door)->invite_keys);
    free(*door);
    *door = NULL;
}

static const struct tl_jwt_key *signer(const struct tl_door *door)
{
    return door->invite_keys != NULL ? door->invite_keys->signer : NULL;
}

bool tl_door_trusted(const struct tl_door *door)
{
    return door->api_key != NULL || signer(door) != NULL;
}

void tl_door_set_clock(struct tl_door *door, int64_t store_s, int64_t now_ms)
{
    door->store_s = store_s;
    door->at_ms = now_ms;
}

static bool invite(const struct tl_door *door, const char *queue, size_t visitor, const char *lane,
                   int64_t now_ms, char body[TL_DOOR_BODY_MAX], struct tl_error *err)
{
    struct tl_invite invite = {.expires = door->store_s + (now_ms - door->at_ms) / 1000 + INVITE_S};
    char text[TL_JWT_SIZE];
    snprintf(invite.visitor, sizeof(invite.visitor), "rehearsal-%zu", visitor);
    snprintf(invite.id, sizeof(invite.id), "rehearsal-%zu", visitor);
    snprintf(invite.lane, sizeof(invite.lane), "%s", lane);
    if (!tl_invite_sign(signer(door), queue, &invite, text, err))
        return false;
    snprintf(body, TL_DOOR_BODY_MAX, "{\"invite\":\"%s\"}", text);
    return true;
}

bool tl_door_join(const struct tl_door *door, const char *queue, size_t visitor, const char *lane,
                  int64_t now_ms, char body[TL_DOOR_BODY_MAX], const char **bearer,
                  struct tl_error *err)
{
    *bearer = door->api_key;
    body[0] = '\0';
    if (door->api_key != NULL)
        snprintf(body, TL_DOOR_BODY_MAX, "{\"visitor\":\"rehearsal-%zu\",\"lane\":\"%s\"}", visitor,
                 lane);
    else if (signer(door) != NULL)
        return invite(door, queue, visitor, lane, now_ms, body, err);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* `verify place`: is the place that a worker proves in the trail, and is it this visitor's? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/archive/checkpoint.h"
#include "common/archive/leaf.h"
#include "common/auth/base64.h"
#include "common/base/units.h"

#include "ctl/trail/trail.h"

struct proof {
    json_t *object; /* the texts are its */
    const char *visitor, *line, *text;
    struct tl_leaf leaf;
    struct tl_checkpoint checkpoint;
    unsigned char salt[TL_LEAF_SALT_BYTES];
    uint64_t index, size;
    struct tl_tlog_proof path;
};

/* ---- the file ---- */

static bool wrong(struct tl_error *err, const char *member)
{
    tl_error_set(err, TL_ERR_INVALID, "no proof of a place: `%s` is missing or not valid", member);
    return false;
}

/* base64url of exactly this many bytes. */
static bool read_bytes(const json_t *text, unsigned char *bytes, size_t length)
{
    size_t n;
    return json_is_string(text) &&
           tl_base64_decode(json_string_value(text), json_string_length(text), bytes, length, &n) &&
           n == length;
}

static bool read_number(const json_t *value, uint64_t *number)
{
    *number = json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool read_path(const json_t *hashes, struct tl_tlog_proof *path)
{
    path->n = json_array_size(hashes);
    if (!json_is_array(hashes) || path->n > TL_TLOG_PROOF_MAX)
        return false;
    for (size_t i = 0; i < path->n; i++)
        if (!read_bytes(json_array_get(hashes, i), path->hashes[i].bytes, TL_TLOG_HASH_BYTES))
            return false;
    return true;
}

static bool read_text(const struct proof *proof, const char *member, const char **text)
{
    *text = json_string_value(json_object_get(proof->object, member));
    return *text != NULL;
}

static bool read_proof(struct proof *proof, struct tl_error *err)
{
    const json_t *object = proof->object;
    if (!read_text(proof, "visitor", &proof->visitor))
        return wrong(err, "visitor");
    if (!read_text(proof, "leaf", &proof->line) ||
        !tl_leaf_read(proof->line, strlen(proof->line), &proof->leaf, &(struct tl_error){0}))
        return wrong(err, "leaf");
    if (!read_bytes(json_object_get(object, "salt"), proof->salt, sizeof(proof->salt)))
        return wrong(err, "salt");
    if (!read_number(json_object_get(object, "index"), &proof->index))
        return wrong(err, "index");
    if (!read_number(json_object_get(object, "size"), &proof->size))
        return wrong(err, "size");
    if (!read_path(json_object_get(object, "hashes"), &proof->path))
        return wrong(err, "hashes");
    if (!read_text(proof, "checkpoint", &proof->text) ||
        !tl_checkpoint_read(proof->text, strlen(proof->text), &proof->checkpoint,
                            &(struct tl_error){0}))
        return wrong(err, "checkpoint");
    return true;
}

/* ---- what it proves ---- */

/* How many sentences were written of what is not right. */
static unsigned find_faults(const struct proof *proof, const struct tl_trail_verifier *key)
{
    struct tl_hash hash;
    struct tl_error why = {0};
    char who[TL_LEAF_WHO_SIZE], held_by[TL_LEAF_WHO_SIZE];
    unsigned faults = 0;
    tl_tlog_leaf_hash(proof->line, strlen(proof->line), &hash);
    if (proof->size != proof->checkpoint.size ||
        !tl_tlog_inclusion_verify(&hash, proof->index, proof->size, &proof->path,
                                  &proof->checkpoint.root)) {
        printf("the leaf is not leaf %" PRIu64 " of the trail of the checkpoint\n", proof->index);
        faults++;
    }
    tl_leaf_who(proof->salt, proof->visitor, strlen(proof->visitor), who);
    if (tl_leaf_held(&proof->leaf, held_by) == 0 || strcmp(who, held_by) != 0) {
        puts("the leaf is not about this visitor");
        faults++;
    }
    if (key != NULL && !tl_checkpoint_verify(proof->text, strlen(proof->text), key, &why)) {
        printf("the checkpoint is not genuine: %s\n", why.text);
        faults++;
    }
    return faults;
}

static void tell(const struct proof *proof, bool has_key)
{
    char time[TL_UNITS_TEXT_MAX], who[TL_LEAF_WHO_SIZE];
    tl_place place = tl_leaf_held(&proof->leaf, who);
    tl_time_format(proof->leaf.ms, time, sizeof(time));
    printf("the place %u:%" PRIu64 " is this visitor's: %s at %s, leaf %" PRIu64 " of %" PRIu64
           " of %s\n",
           tl_place_lane(place), (uint64_t)tl_place_seq(place), tl_leaf_kind_name(proof->leaf.kind),
           time, proof->index, proof->size, proof->checkpoint.origin);
    if (!has_key)
        puts("no key was given: who signed the checkpoint was not verified");
}

int tl_command_verify_place(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_trail_verifier verifier = {0};
    json_error_t at;
    struct proof proof = {.object = json_load_file(options->words[0], 0, &at)};
    const struct tl_trail_verifier *key = options->key != NULL ? &verifier : NULL;
    bool ok = key == NULL || tl_trail_verifier_read(options->key, &verifier, &err) ||
              tl_error_prefix(&err, "--key");
    if (ok && proof.object == NULL)
        ok = tl_error_set(&err, TL_ERR_INVALID, "%s", at.text);
    if (ok && !read_proof(&proof, &err)) {
        tl_error_prefix(&err, "%s", options->words[0]);
        ok = false;
    }
    unsigned faults = ok ? find_faults(&proof, key) : 0;
    if (ok && faults == 0)
        tell(&proof, key != NULL);
    json_decref(proof.object);
    if (!ok)
        return tl_ctl_fail(tl_ctl_file_status(&err), &err);
    return faults > 0 ? TL_EXIT_PROBLEM : TL_EXIT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/archive/checkpoint.h"
#include "common/archive/migrate.h"
#include "common/archive/postgres.h"
#include "common/auth/base64.h"
#include "common/auth/secret_file.h"

#include "ctl/trail/trail.h"

#define TILES_AT_ONCE "64"

/* Calls `write` with each tile of this level, from the first one on. */
static bool each_tile(struct tl_postgres *postgres, const char *generation, const char *level,
                      bool (*write)(const unsigned char *bytes, size_t length),
                      struct tl_error *err)
{
    char next[24] = "0";
    const char *const values[] = {generation, level, next, TILES_AT_ONCE};
    for (uint64_t n = 0;;) {
        PGresult *found = tl_postgres_run(
            postgres,
            "SELECT n, string_agg(bytes, '' ORDER BY first) FROM trail_tiles WHERE "
            "generation_id = $1 AND level = $2 AND n >= $3 GROUP BY n ORDER BY n LIMIT $4",
            4, values, err);
        if (found == NULL)
            return false;
        bool ok = true;
        int rows = PQntuples(found);
        for (int i = 0; ok && i < rows; i++, n++) {
            size_t length = 0;
            unsigned char *bytes =
                PQunescapeBytea((const unsigned char *)PQgetvalue(found, i, 1), &length);
            ok = bytes != NULL && strtoull(PQgetvalue(found, i, 0), NULL, 10) == n &&
                 write(bytes, length);
            PQfreemem(bytes);
        }
        PQclear(found);
        if (!ok)
            return tl_error_set(err, TL_ERR_STORE, "tile %" PRIu64 " of the trail is damaged", n);
        if (rows == 0)
            return true;
        snprintf(next, sizeof(next), "%" PRIu64, n);
    }
}

static bool write_hashes(const unsigned char *bytes, size_t length)
{
    char text[TL_BASE64_LENGTH(TL_TLOG_TILE * TL_TLOG_HASH_BYTES) + 1];
    if (length > TL_TLOG_TILE * TL_TLOG_HASH_BYTES)
        return false;
    tl_base64_encode(bytes, length, text);
    puts(text);
    return true;
}

static bool write_leaves(const unsigned char *bytes, size_t length)
{
    const char *leaf;
    size_t leaf_length;
    while (tl_bundle_next(&bytes, &length, &leaf, &leaf_length))
        printf("%.*s\n", (int)leaf_length, leaf);
    return length == 0;
}

/* The last generation of the queue with a trail, or the one that was asked for. *found: NULL when
 * there is none. */
static bool find(struct tl_postgres *postgres, const struct tl_ctl_options *options,
                 PGresult **found, struct tl_error *err)
{
    char generation[24];
    const char *const values[] = {options->words[0], options->generation != 0 ? generation : NULL};
    snprintf(generation, sizeof(generation), "%" PRIu64, options->generation);
    *found = tl_postgres_run(
        postgres,
        "SELECT t.generation_id, t.checkpoint FROM trails AS t JOIN queue_generations AS g USING "
        "(generation_id) JOIN queues USING (queue_id) WHERE name = $1 AND "
        "(g.generation = $2 OR $2::bigint IS NULL) ORDER BY g.generation DESC LIMIT 1",
        2, values, err);
    return *found != NULL;
}

bool tl_trail_open_archive(struct tl_postgres *postgres, const struct tl_ctl_options *options,
                           int64_t *kept_ms, struct tl_error *err)
{
    char url[TL_CTL_URL_MAX];
    unsigned version = 0;
    const struct tl_config *config = tl_config_load(options->config, err);
    bool ok =
        config != NULL && tl_ctl_archive_url(config, options, url, err) &&
        tl_postgres_check(url, err) && tl_postgres_open(postgres, url, "tellerline", err) &&
        tl_migrate_version(postgres, &version, err) &&
        (version > 0 || tl_error_set(err, TL_ERR_INVALID,
                                     "PostgreSQL has no tables of an archive: run "
                                     "`tellerline db migrate`")) &&
        tl_postgres_do(postgres, "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", 0,
                       NULL, err);
    if (ok && kept_ms != NULL)
        *kept_ms = config->archive.kept_ms;
    tl_config_free(&config);
    return ok;
}

int tl_command_trail_export(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_postgres postgres = {0};
    PGresult *found = NULL;
    int status = TL_EXIT_OK;
    if (!tl_trail_open_archive(&postgres, options, NULL, &err) ||
        !find(&postgres, options, &found, &err)) {
        status = tl_ctl_fail(TL_EXIT_FAILED, &err);
    } else if (PQntuples(found) == 0) {
        status = tl_ctl_refuse(TL_EXIT_PROBLEM, "the archive has no such trail of queue %s",
                               options->words[0]);
    } else {
        const char *id = PQgetvalue(found, 0, 0);
        printf("%s\n", PQgetvalue(found, 0, 1));
        bool ok = each_tile(&postgres, id, "0", write_hashes, &err) && puts("") != EOF &&
                  each_tile(&postgres, id, "-1", write_leaves, &err);
        status = ok ? TL_EXIT_OK : tl_ctl_fail(TL_EXIT_FAILED, &err);
    }
    PQclear(found);
    tl_postgres_close(&postgres);
    return status;
}

/* The one that archivers sign with, in their name. */
static bool print_archived_key(const struct tl_ctl_options *options, struct tl_error *err)
{
    struct tl_postgres postgres = {0};
    PGresult *found = NULL;
    if (tl_trail_open_archive(&postgres, options, NULL, err))
        found = tl_postgres_run(&postgres, "SELECT trail_key FROM archive_keys", 0, NULL, err);
    bool ok = found != NULL &&
              (PQntuples(found) == 1 ||
               tl_error_set(err, TL_ERR_INVALID, "the archive has no key yet: start an archiver"));
    if (ok)
        puts(PQgetvalue(found, 0, 0));
    PQclear(found);
    tl_postgres_close(&postgres);
    return ok;
}

/* The one that an archiver with these settings would make the first trail with. */
static bool print_own_key(const struct tl_config *config, struct tl_error *err)
{
    struct tl_trail_signer signer = {0};
    unsigned char seed[TL_SECRET_KEY_BYTES];
    char text[TL_VERIFIER_KEY_MAX];
    bool ok =
        tl_secret_load_key(config->secrets.trail_key, "the key of the trail", NULL, seed, err) &&
        tl_trail_signer_init(&signer, seed, config->http.public_url, err);
    if (ok) {
        tl_trail_verifier_write(&signer, text);
        puts(text);
    }
    sodium_memzero(seed, sizeof(seed));
    sodium_memzero(&signer, sizeof(signer));
    return ok;
}

int tl_command_trail_key(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    char url[TL_CTL_URL_MAX];
    const struct tl_config *config = tl_config_load(options->config, &err);
    bool ok = config != NULL && (tl_ctl_archive_url(config, options, url, &err)
                                     ? print_archived_key(options, &err)
                                     : err.kind == TL_ERR_INVALID && print_own_key(config, &err));
    tl_config_free(&config);
    return ok ? TL_EXIT_OK : tl_ctl_fail(TL_EXIT_FAILED, &err);
}

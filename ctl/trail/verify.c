/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/units.h"

#include "ctl/trail/file.h"
#include "ctl/trail/replay.h"
#include "ctl/trail/rows.h"
#include "ctl/trail/trail.h"

enum { SHOWN = 20 /* findings of a kind */ };

struct verification {
    struct tl_trail_file file;
    struct tl_replay *replay;
    struct tl_trail_rows *rows; /* NULL: they are not compared */
    FILE *in;
    uint64_t n_lines, n_wrong;
};

static void take_line(void *context, const char *line, size_t length)
{
    struct verification *self = context;
    struct tl_leaf leaf;
    struct tl_error why;
    bool is_leaf = tl_leaf_read(line, length, &leaf, &why);
    if (is_leaf && self->rows != NULL)
        tl_trail_rows_take(self->rows, &leaf);
    if (is_leaf)
        tl_replay_take(self->replay, self->n_lines, &leaf);
    else
        tl_replay_note(self->replay, self->n_lines, why.text);
    self->n_lines++;
}

/* ---- the hashes ---- */

/* Writes the line, without its end, and closes the sentence. */
static void quote_line(struct verification *self, size_t line)
{
    char text[TL_LEAF_MAX + 2];
    if (line < self->file.n_leaves &&
        fseek(self->in, (long)self->file.offsets[line], SEEK_SET) == 0 &&
        fgets(text, sizeof(text), self->in) != NULL) {
        char quoted[160];
        text[strcspn(text, "\n")] = '\0';
        tl_quote(text, quoted, sizeof(quoted));
        printf(": %s", quoted);
    }
    puts("");
}

static void show_difference(void *context, const struct tl_trail_difference *found)
{
    struct verification *self = context;
    if (++self->n_wrong > SHOWN)
        return;
    switch (found->how) {
    case TL_TRAIL_ALTERED:
        printf("leaf %zu was altered", found->at);
        quote_line(self, found->line);
        break;
    case TL_TRAIL_REPLACED:
        printf("leaf %zu was replaced with leaf %zu", found->at, found->other);
        quote_line(self, found->line);
        break;
    case TL_TRAIL_SWAPPED:
        printf("leaf %zu and leaf %zu were swapped", found->at, found->at + 1);
        quote_line(self, found->line);
        break;
    case TL_TRAIL_REMOVED:
        printf(found->n == 1 ? "leaf %zu was removed\n"
                             : "leaf %zu and %zu after it were removed\n",
               found->at, found->n - 1);
        break;
    case TL_TRAIL_INSERTED:
        printf("%zu line%s inserted before leaf %zu", found->n, found->n == 1 ? " was" : "s were",
               found->at);
        quote_line(self, found->line);
        break;
    }
}

static void complain(struct verification *self, const char *sentence)
{
    self->n_wrong++;
    puts(sentence);
}

static void check_root(struct verification *self)
{
    struct tl_hash root;
    tl_trail_root(self->file.hashes, self->file.n_hashes, &root);
    if (self->file.n_hashes != self->file.checkpoint.size)
        complain(self, "the file does not have as many hashes as its checkpoint says");
    else if (!tl_hash_equal(&root, &self->file.checkpoint.root))
        complain(self, "the hashes are not those of the checkpoint: one of both was altered");
    tl_trail_compare(&self->file, show_difference, self);
    if (self->n_wrong > SHOWN)
        puts("... and more");
}

static void check_signature(struct verification *self, const char *text, size_t length,
                            const char *which, const struct tl_trail_verifier *verifier)
{
    struct tl_error why;
    if (tl_checkpoint_verify(text, length, verifier, &why))
        return;
    self->n_wrong++;
    printf("the %scheckpoint is not genuine: %s\n", which, why.text);
}

/* False with err when the older checkpoint cannot be read. */
static bool check_since(struct verification *self, const char *path,
                        const struct tl_trail_verifier *verifier, struct tl_error *err)
{
    struct tl_checkpoint old;
    struct tl_hash root;
    char text[TL_CHECKPOINT_MAX];
    size_t length;
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    bool ok = tl_trail_checkpoint_read(in, text, &length, &old, err);
    if (fclose(in) != 0 || !ok)
        return !ok ? tl_error_prefix(err, "%s", path)
                   : tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    if (verifier != NULL)
        check_signature(self, text, length, "older ", verifier);
    if (strcmp(old.origin, self->file.checkpoint.origin) != 0) {
        complain(self, "the older checkpoint is of another trail");
    } else if (old.size > self->file.n_hashes) {
        complain(self, "the older checkpoint has more leaves: some were removed since");
    } else {
        tl_trail_root(self->file.hashes, (size_t)old.size, &root);
        if (!tl_hash_equal(&root, &old.root))
            complain(self, "the trail does not begin with that of the older checkpoint: something "
                           "before it was altered since");
    }
    return true;
}

/* ---- the line ---- */

static void check_line(struct verification *self)
{
    struct tl_replay_result result = tl_replay_result(self->replay);
    for (size_t i = 0; i < result.n_findings && i < SHOWN; i++) {
        char time[40];
        tl_time_format(result.findings[i].ms, time, sizeof(time));
        printf("leaf %" PRIu64 ", %s, %s\n", result.findings[i].leaf, time,
               result.findings[i].text);
    }
    if (result.n_findings > SHOWN)
        printf("... and %zu more\n", result.n_findings - SHOWN);
    self->n_wrong += result.n_findings;
}

/* ---- PostgreSQL ---- */

static bool check_rows(struct verification *self, const struct tl_ctl_options *options,
                       struct tl_error *err)
{
    struct tl_postgres postgres = {0};
    int64_t kept_ms = 0;
    uint64_t n_wrong = 0;
    bool ok = tl_trail_open_archive(&postgres, options, &kept_ms, err) &&
              tl_trail_rows_compare(self->rows, &postgres, self->file.checkpoint.origin,
                                    tl_clock_wall_ms() - kept_ms, &n_wrong, err);
    self->n_wrong += n_wrong;
    tl_postgres_close(&postgres);
    return ok;
}

static void sum_up(const struct verification *self, bool has_key, const char *since)
{
    struct tl_replay_result result = tl_replay_result(self->replay);
    printf("%s: %zu leaves, %" PRIu64 " entered, %" PRIu64 " restored, %" PRIu64
           " admitted, %" PRIu64 " ended\n",
           self->file.checkpoint.origin, self->file.n_leaves, result.entered, result.restored,
           result.admitted, result.ended);
    if (result.gaps > 0 || result.unprovable > 0)
        printf("%" PRIu64 " gap%s; of %" PRIu64 " admissions and ends it cannot be proved whether "
               "they were right\n",
               result.gaps, result.gaps == 1 ? "" : "s", result.unprovable);
    if (!has_key)
        puts("no key was given: who signed the checkpoint was not verified");
    if (self->n_wrong > 0)
        printf("%" PRIu64 " violation%s\n", self->n_wrong, self->n_wrong == 1 ? "" : "s");
    else
        printf("nothing was altered%s, and each %sadmission was the turn of who was admitted\n",
               since != NULL ? " since the older checkpoint" : "",
               result.unprovable > 0 ? "other " : "");
}

static bool verify(struct verification *self, const struct tl_ctl_options *options,
                   struct tl_error *err)
{
    struct tl_trail_verifier verifier = {0};
    const struct tl_trail_verifier *key = options->key != NULL ? &verifier : NULL;
    if (key != NULL && !tl_trail_verifier_read(options->key, &verifier, err))
        return tl_error_prefix(err, "--key");
    self->in = fopen(options->words[0], "re");
    if (self->in == NULL)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", options->words[0], strerror(errno));
    if (!tl_trail_file_read(self->in, &self->file, take_line, self, err))
        return tl_error_prefix(err, "%s", options->words[0]);
    if (key != NULL)
        check_signature(self, self->file.text, self->file.length, "", key);
    check_root(self);
    if (options->older != NULL && !check_since(self, options->older, key, err))
        return false;
    check_line(self);
    if (self->rows != NULL && !check_rows(self, options, err))
        return false;
    sum_up(self, key != NULL, options->older);
    return true;
}

int tl_command_verify_trail(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct verification self = {.replay = tl_replay_new(),
                                .rows = options->archive ? tl_trail_rows_new() : NULL};
    bool ok = verify(&self, options, &err);
    if (self.in != NULL && fclose(self.in) != 0)
        ok = ok && tl_error_set(&err, TL_ERR_SYSTEM, "%s: %s", options->words[0], strerror(errno));
    tl_replay_free(self.replay);
    tl_trail_rows_free(self.rows);
    tl_trail_file_free(&self.file);
    if (!ok)
        return tl_ctl_fail(tl_ctl_file_status(&err), &err);
    return self.n_wrong > 0 ? TL_EXIT_PROBLEM : TL_EXIT_OK;
}

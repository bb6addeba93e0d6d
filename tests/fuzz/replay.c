/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over every file of the folders given, so that a corpus is an ordinary test:
 * without libFuzzer, with any compiler. Fails when there is nothing to run.
 * Usage: fuzz_replay TARGET FOLDER... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "replay.h"

static int is_no_dot_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A buffer of exactly the file's size, so that a sanitizer sees the first byte read beyond it. */
static int run_file(const struct fuzz_target *target, const char *path)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) {
        fprintf(stderr, "%s: not a readable file\n", path);
        if (file != NULL)
            (void)fclose(file);
        return 1;
    }
    size_t size = (size_t)status.st_size;
    uint8_t *data = malloc(size > 0 ? size : 1);
    int failed = data == NULL || fread(data, 1, size, file) != size;
    (void)fclose(file);
    if (failed) {
        fprintf(stderr, "%s: cannot be read whole\n", path);
    } else {
        printf("%s\n", path);
        (void)fflush(stdout); /* the last line names the input that crashed */
        (void)target->run(data, size);
    }
    free(data);
    return failed;
}

/* In the order of names; adds to *n. Returns 1 on failure. */
static int run_folder(const struct fuzz_target *target, const char *folder, unsigned *n)
{
    struct dirent **entries;
    int failed = 0;
    int count = scandir(folder, &entries, is_no_dot_file, alphasort);
    if (count < 0) {
        perror(folder);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        failed |= length < 0 || (size_t)length >= sizeof(path) || run_file(target, path) != 0;
        free(entries[i]);
        ++*n;
    }
    free(entries);
    return failed;
}

int main(int argc, char **argv)
{
    const struct fuzz_target *target = fuzz_targets;
    unsigned n = 0;
    int failed = 0;
    while (target->name != NULL && (argc < 2 || strcmp(target->name, argv[1]) != 0))
        target++;
    if (target->name == NULL) {
        fprintf(stderr, "usage: %s TARGET FOLDER...; there is no target %s\n", argv[0],
                argc > 1 ? argv[1] : "without a name");
        return 1;
    }
    for (int i = 2; i < argc; i++)
        failed |= run_folder(target, argv[i], &n);
    if (n == 0) {
        fprintf(stderr, "no inputs: usage: %s TARGET FOLDER...\n", argv[0]);
        return 1;
    }
    printf("%u inputs\n", n);
    return failed;
}

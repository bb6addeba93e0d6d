/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a trail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/archive/trail_path.h"

static struct tl_archive_job job;

static void reads_tile(const char *path, uint64_t generation, int level, uint64_t n, unsigned width)
{
    if (!tl_trail_path_read(path, &job))
        fail_msg("%s is refused", path);
    assert_int_equal(job.kind, TL_ARCHIVE_TILE);
    assert_int_equal(job.generation, generation);
    assert_int_equal(job.tile.level, level);
    assert_int_equal(job.tile.n, n);
    assert_int_equal(job.tile.width, width);
}

static void test_tiles(void **state)
{
    (void)state;
    reads_tile("tile/0/000", 0, 0, 0, 256);
    reads_tile("tile/1/067", 0, 1, 67, 256);
    reads_tile("tile/0/x001/x234/067", 0, 0, 1234067, 256);
    reads_tile("tile/0/x001/234.p/1", 0, 0, 1234, 1);
    reads_tile("tile/2/000.p/255", 0, 2, 0, 255);
    reads_tile("tile/entries/x001/000.p/17", 0, TL_TRAIL_LEAVES, 1000, 17);
    reads_tile("1795000000000000/tile/entries/003", 1795000000000000, TL_TRAIL_LEAVES, 3, 256);
}

static void test_checkpoints(void **state)
{
    (void)state;
    assert_true(tl_trail_path_read("checkpoint", &job));
    assert_int_equal(job.kind, TL_ARCHIVE_CHECKPOINT);
    assert_int_equal(job.generation, 0);
    assert_true(tl_trail_path_read("7/checkpoint", &job));
    assert_int_equal(job.generation, 7);
}

/* Each has one address only, so that no cache holds it twice. */
static void test_all_else(void **state)
{
    static const char *const wrong[] = {
        "",
        "checkpoint/",
        "0/checkpoint",
        "07/checkpoint",
        "12345678901234567/checkpoint",
        "tile",
        "tile/",
        "tile/0",
        "tile/0/",
        "tile/0/0",
        "tile/0/0000",
        "tile/0/x000/001",
        "tile/0/x001",
        "tile/0/x001/",
        "tile/0/x001/2",
        "tile/00/001",
        "tile/7/001",
        "tile/-1/001",
        "tile/0/001.p/0",
        "tile/0/001.p/256",
        "tile/0/001.p/01",
        "tile/0/001.p/",
        "tile/0/001/",
        "tile/0/001.p/1/",
        "tile/leaves/001",
        "7/7/tile/0/001",
        "tile/0/x999/x999/x999/x999/x999/x999/999",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (tl_trail_path_read(wrong[i], &job))
            fail_msg("%s is read", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_all_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tellerline-dispatcher: applies ingest batches to the lines, exactly once and in stream order.
 *
 * The replica that holds a queue's lease applies its batches. The function apply checks the fence
 * of the lease and that no older entry is pending, so an earlier holder that wakes up late does no
 * harm. See dispatcher.c, apply.c and apply.lua.
 */
#include "common/role/role_main.h"
#include "dispatcher/dispatcher.h"

int main(int argc, char **argv)
{
    return tl_role_main(&tl_dispatcher, argc, argv);
}

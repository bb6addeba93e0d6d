/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tellerline-notifier: tells the hooks of the configuration what happens to queues.
 *
 * It reads what the other programs write into the journal of a queue, and slows none of them.
 */
#include "common/role/role_main.h"
#include "notifier/notifier.h"

int main(int argc, char **argv)
{
    return tl_role_main(&tl_notifier, argc, argv);
}

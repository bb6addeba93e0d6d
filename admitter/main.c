/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tellerline-admitter: admits the next visitors while there is capacity.
 *
 * Events wake it: a session ended, a visitor joined, the settings changed. A slow timer makes up
 * for a missed one. See admitter.c and admit.lua.
 */
#include "admitter/admitter.h"
#include "common/role/role_main.h"

int main(int argc, char **argv)
{
    return tl_role_main(&tl_admitter, argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tellerline-expirer: ends sessions at their deadline and drops waiting visitors who went away.
 *
 * It sleeps until the next deadline instead of polling. See expirer.c (sessions), absence.c
 * (waiting visitors) and the functions beside them.
 */
#include "common/role/role_main.h"
#include "expirer/expirer.h"

int main(int argc, char **argv)
{
    return tl_role_main(&tl_expirer, argc, argv);
}

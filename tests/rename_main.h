/* SPDX-License-Identifier: Apache-2.0 */
/* Read before each test of an executable that holds several: its main gets a name of its own
 * (tests/CMakeLists.txt). */
#ifndef TL_TEST_RENAME_MAIN_H
#define TL_TEST_RENAME_MAIN_H

int TEST_MAIN(void);
#define main TEST_MAIN

#endif

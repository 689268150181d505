/* A test program's first argument, or DTRAIN_TEST_CASE, is a pattern of the cases to run:
 * unit_ps_test_rules '*adam*'. Linked into all of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* glibc gives constructors what main() gets. */
__attribute__((constructor)) static void take_filter(int argc, char **argv) {
    const char *only = argc > 1 ? argv[1] : getenv("DTRAIN_TEST_CASE");
    if (only != NULL) cmocka_set_test_filter(only);
}

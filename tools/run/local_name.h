/* Whether a host of the command line is this one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_LOCAL_NAME_H
#define RUN_LOCAL_NAME_H
#include <stdbool.h>

/* "localhost", this host's name, or a name or number of one of its addresses. */
bool is_local_name(const char *name);

#endif

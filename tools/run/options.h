/* dtrain-run's command line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>

enum { MAX_PROCESSES = 4096 }; /* workers, and also servers */

typedef struct options {
    int workers, servers;
    bool mixed;                 /* workers also serve */
    double timeout;             /* seconds; 0: none */
    double grace;               /* seconds for the other processes after the first failure */
    bool keep_going;            /* no limit for the other processes */
    const char *server_program; /* NULL: dtrain-server, beside this program or on the PATH */
    char **program;             /* and its arguments, NULL at the end */
} options_t;

/* Returns 0; -1 with the reason on stderr; 1 when it has answered --help or --version. */
int options_parse(options_t *options, int argc, char **argv);

#endif

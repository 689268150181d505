/* dtrain-run's command line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H
#include "host_list.h"
#include "texts.h"

#include <stdbool.h>

enum { MAX_PROCESSES = 4096 }; /* workers, and also servers */

typedef struct options {
    int workers, servers;       /* workers 0: as many as the discovered hosts have slots */
    bool mixed;                 /* workers also serve */
    double timeout;             /* seconds; 0: none */
    double grace;               /* seconds for the other processes after the first failure */
    bool keep_going;            /* no limit for the other processes */
    const char *server_program; /* NULL: dtrain-server, beside this program or on the PATH */
    char **program;             /* and its arguments, NULL at the end */
    host_list_t hosts;          /* none: this host, for all */
    bool oversubscribe;         /* more workers than slots */
    texts_t passed;             /* variables for all processes, "NAME=VALUE" */
    const char *address;        /* by which the others reach rank 0's host; NULL: found out */
    double host_timeout;        /* seconds; a host that is silent for longer is lost */
    const char *ssh;            /* the program and arguments, separated by blanks */
    const char *ssh_port, *ssh_identity; /* NULL: ssh's own */
    int elastic_min, elastic_max;        /* 0: the job is not elastic */
    double elastic_timeout;              /* seconds with fewer workers than elastic_min */
    const char *discovery;     /* the script that prints the hosts; NULL: they are fixed */
    double discovery_interval; /* seconds */
    double agent; /* > 0: this is the agent of a launcher elsewhere; its host_timeout */
} options_t;

/* Returns 0; -1 with the reason on stderr; 1 when it has answered --help or --version. */
int options_parse(options_t *options, int argc, char **argv);
void options_free(options_t *options);

#endif

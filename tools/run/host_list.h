/* The hosts of a job, as the command line and hostfiles name them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_HOST_LIST_H
#define RUN_HOST_LIST_H

#include <stdio.h>

enum { MAX_HOSTS = 4096, MAX_SLOTS = 4096 };

typedef struct host_entry {
    char *name; /* for ssh: perhaps USER@HOST */
    int slots;  /* workers to start there */
} host_entry_t;

typedef struct host_list {
    host_entry_t *entries; /* with different names */
    int count, slots;      /* slots: of all together */
    char why[500];         /* after a failure: the reason */
} host_list_t;

/* Adds "host:slots,host2,..."; a host without slots has one, and one that is named again has the
 * sum. what: the option, for errors. Returns 0, or -1 with the reason in `why`. */
int host_list_add(host_list_t *hosts, const char *what, const char *text);
/* Adds a file's lines: "host", "host:slots" or "host slots=N"; '#' begins a comment. Errors name
 * the line. */
int host_list_read(host_list_t *hosts, const char *path);
/* The same, of a file that is open. what: its name, for errors. */
int host_list_parse(host_list_t *hosts, FILE *file, const char *what);
void host_list_free(host_list_t *hosts);

#endif

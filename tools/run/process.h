/* One process of the job: a worker or a server.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H
#include "options.h"
#include "output.h"
#include "rendezvous.h"

#include <sys/types.h>

typedef struct process {
    pid_t pid;           /* also the number of its process group; 0: not started */
    bool server;         /* else a worker */
    int index;           /* rank, or number of the server */
    bool ended, handled; /* handled: the job has counted its end */
    int status;          /* once ended: exit status, or 128 + signal, as in a shell */
    int signal;          /* once ended: the signal that killed it, or 0 */
    stream_t out, err;
    int report; /* until it is confirmed: descriptor for the errno if it cannot run its program */
} process_t;

/* Runs the program in a new process group, with the job in its environment and the descriptor
 * `input` (< 0: the launcher's) as its input, which is closed here. Returns 0, or the exit status
 * of a launcher that cannot run it (126, 127), with the reason on stderr. */
int process_start(process_t *process, const options_t *options, const rendezvous_t *rendezvous,
                  int input);
/* Called once for each started process; other processes may be started before. Waits until the
 * program runs: returns 0, or the errno of the failure. process_failed() prints it and returns the
 * exit status. */
int process_confirm(process_t *process);
int process_failed(const process_t *process, const options_t *options, int error);
/* Checks whether the process has ended; it stays a zombie, which reserves the number of its process
 * group. */
bool process_poll(process_t *process);
void process_signal(const process_t *process, int number);            /* to the whole group */
void process_name(const process_t *process, char *name, size_t size); /* "rank 0", "server 1" */

#endif

/* One process of the job: a worker or a server.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H
#include "options.h"
#include "output.h"
#include "rendezvous.h"

#include <sys/types.h>

typedef struct process {
    pid_t pid;           /* also its process group's; 0: not started */
    bool server;         /* else a worker */
    int index;           /* rank, or number of the server */
    bool ended, handled; /* handled: the job knows of it */
    int status;          /* once ended: as a shell's: exit status, or 128 + signal */
    int signal;          /* once ended: what killed it, or 0 */
    stream_t out, err;
    int report; /* until it is confirmed: where it would say why it cannot run its program */
} process_t;

/* Runs the program in a process group of its own, with the job in its environment and the
 * descriptor `input` (< 0: ours) as its input, which is closed here. 0, or the exit status of a
 * launcher that could not (126, 127), with the reason on stderr. */
int process_start(process_t *process, const options_t *options, const rendezvous_t *rendezvous,
                  int input);
/* Once for each that was started; others can be meanwhile. Waits until the program runs: 0, or the
 * errno that says why it does not. process_failed() says that, and returns the exit status. */
int process_confirm(process_t *process);
int process_failed(const process_t *process, const options_t *options, int error);
/* Notices that it has ended, if so; it stays a zombie, which keeps its process group's number. */
bool process_poll(process_t *process);
void process_signal(const process_t *process, int number);            /* to the whole group */
void process_name(const process_t *process, char *name, size_t size); /* "rank 0", "server 1" */

#endif

/* A program that this process starts, in a process group of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_CHILD_H
#define RUN_CHILD_H
#include "recipe.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Why a program does not run. */
enum failed_step { FAILED_NOTHING, FAILED_START, FAILED_DIRECTORY, FAILED_PROGRAM };
typedef struct failure {
    int32_t step, error; /* what failed, and its errno */
} failure_t;

typedef struct child {
    pid_t pid; /* also the number of its process group; 0: not started */
    bool ended;
    int status; /* once ended: exit status, or 128 + signal, as in a shell */
    int signal; /* once ended: the signal that killed it, or 0 */
    int report; /* until it is confirmed: readable once it is known whether the program runs */
} child_t;

/* Runs the recipe with these descriptors as 0, 1 and 2 (< 0: the starter's), and with a copy of
 * `inherited` unless that is < 0. The child is killed when this process ends, however it ends. */
failure_t child_start(child_t *child, const recipe_t *recipe, const int fds[3], int inherited);
/* Called once for each started child; others may be started before. Waits until the program runs,
 * or cannot. */
failure_t child_confirm(child_t *child);
/* Checks whether the child has ended; it stays a zombie, which reserves the number of its process
 * group, until child_release(). */
bool child_poll(child_t *child);
void child_signal(const child_t *child, int number); /* to the whole group */
void child_release(child_t *child);                  /* kills what is left of the group */
/* Says "cannot run PROGRAM: ..." (where: " on host b", or ""); returns the exit status of a
 * launcher that cannot run it. */
int failure_report(failure_t failure, const recipe_t *recipe, const char *where);

#endif

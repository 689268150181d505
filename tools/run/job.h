/* Runs all processes of the job, from their start to their end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_JOB_H
#define RUN_JOB_H
#include "options.h"

/* Runs the job; returns the launcher's exit status. */
int job_run(const options_t *options);

#endif

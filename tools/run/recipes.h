/* What the processes of the job run, with which variables.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_RECIPES_H
#define RUN_RECIPES_H
#include "options.h"
#include "process.h"
#include "secret.h"

/* What all processes of the job have in common. */
typedef struct common {
    int workers;     /* of the job, or of its first generation */
    char *directory; /* of this process, and so of those on other hosts */
    char url[400];   /* where the ranks meet; on other hosts of an elastic job it is another one */
    bool loopback;   /* an elastic job of this machine only */
    int listener;    /* for rank 0, if it is here and inherits one; else -1 */
    char secret[SECRET_LENGTH + 1];
    char secret_path[SECRET_PATH]; /* on this host; empty: the environment has a secret */
} common_t;

void recipe_write(process_t *process, const options_t *options, const common_t *common);

#endif

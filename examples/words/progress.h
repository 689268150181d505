/* What rank 0 tells of the training of all workers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_PROGRESS_H
#define WORDS_PROGRESS_H
#include "trainer.h"

void progress_begin(trainer_t *trainer);
/* A line now and then. 0, or -1 with the reason on stderr. */
int progress_tell(trainer_t *trainer);
int progress_end(trainer_t *trainer); /* a last one */

#endif

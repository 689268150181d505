/* dtrain_function.h - update rules of one's own: what a server does with what is pushed.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A table of the rule DTRAIN_RULE_FUNCTION names a function, and every server of the job must have
 * it: registered by dtrain_function_register() in the process that serves, or loaded from a shared
 * object that the server's owner names in the option ps.functions and that exports one symbol,
 * dtrain_function_query(). Workers need only the name.
 *
 * A function is given batches of rows: of a sparse table one for each key; of a dense one with
 * row_length whole rows; of another dense one "rows" that are ranges, as they were pushed or as
 * they lie on the server, those of one length together. How many there are is not the function's to
 * choose: at most those of a request (256 KiB of values), and under BSP as many of several
 * requests. It runs on the server's progress thread, under the server's lock, while every other
 * request to the server waits: it must not call dtrain, block, or throw. Calls for one server are
 * made one at a time; one function may serve several servers and tables at once.
 *
 * Each call returns DTRAIN_OK or a status < 0, with a text in batch->error, which the caller of the
 * push or pull gets. The server then puts values and state of the rows of the request back as they
 * were, so that of one that failed nothing is applied. (BSP: what fails is the update of a
 * clock, after the pushes were taken; rows that were updated before stay so, and pushes and pulls
 * fail from then on until the table is restored from a checkpoint.) */
#ifndef DTRAIN_FUNCTION_H
#define DTRAIN_FUNCTION_H
#include "dtrain.h"
#ifdef __cplusplus
extern "C" {
#endif

#define DTRAIN_FUNCTION_ABI    2u /* grows when a rule here changes */
#define DTRAIN_FUNCTION_STATES 8  /* arrays that a function may keep, at most */

/* One array of state, which starts at 0, can be pulled and set, and is in checkpoints. */
typedef struct dtrain_function_state {
    const char *name; /* 1 to 31 of [a-z0-9_]; not "values", "keys" or "steps"             */
    uint32_t dtype;   /* DTRAIN_F32, DTRAIN_F64 or DTRAIN_U64                              */
    uint32_t per_row; /* 0: a number for each element; 1: one for the row, which a dense
                         table must have (row_length)                                      */
} dtrain_function_state_t;

/* The memory of one row, aligned to its numbers; rows of a call do not overlap. */
typedef struct dtrain_function_row {
    uint64_t key;       /* sparse: its key; dense: its first element in the table           */
    void *values;       /* what the server holds                                            */
    const void *pushed; /* update, aggregate                                                */
    void *pulled;       /* get: to be written                                               */
    void *state[DTRAIN_FUNCTION_STATES]; /* in the order of dtrain_function_t.states         */
} dtrain_function_row_t;

typedef struct dtrain_function_batch {
    uint32_t struct_size;
    uint32_t dtype; /* of values, pushed and pulled                                      */
    const dtrain_function_row_t *rows;
    uint64_t count;   /* rows                                                              */
    uint64_t dim;     /* elements of each                                                  */
    uint64_t version; /* updates applied to this part of the table before                  */
    /* As the workers gave them, 0 replaced by the defaults; learning_rate is the current one. Those
     * that change built-in optimizers are the function's to heed or not. */
    const dtrain_table_params_t *params;
    char *error;         /* where the text of a failure goes, NUL-terminated                  */
    uint64_t error_size; /* bytes there                                                       */
} dtrain_function_batch_t;

typedef dtrain_status_t (*dtrain_function_fn)(void *user, const dtrain_function_batch_t *batch);

typedef struct dtrain_function {
    uint32_t struct_size, abi; /* DTRAIN_FUNCTION_ABI it was compiled with                  */
    const char *name;          /* 1 to 63 of [A-Za-z0-9_.-]                                 */
    void *user;                /* first argument of each call                               */
    const dtrain_function_state_t *states; /* [state_count] */
    uint32_t state_count, reserved;
    dtrain_function_fn update; /* applies `pushed` to values and state                      */
    /* What a pull returns: writes `pulled`, changes nothing else. NULL: the values. Of a key
     * without a row, values are the initial ones and state is 0. */
    dtrain_function_fn get;
    /* BSP: combines `pushed`, one worker's push of a clock, with `values`, which are the clock's so
     * far (the first is taken as it is); there is no state. NULL: the sum. */
    dtrain_function_fn aggregate;
} dtrain_function_t;

/* The one symbol of a shared object of ps.functions: its functions, for the indices 0, 1, ... NULL
 * after the last. Those for a core of that ABI, or, where it has none, its own, so that the core
 * can refuse them by both numbers; NULL for index 0 is refused, too. Their names differ. What it
 * returns is never freed. */
DTRAIN_API const dtrain_function_t *dtrain_function_query(uint32_t core_abi, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif

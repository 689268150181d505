/* dtrain_function.h - user-defined update rules: what a server does with pushed values.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A table with the rule DTRAIN_RULE_FUNCTION names a function, which every server of the job must
 * have. The process that serves registers it by dtrain_function_register(), or loads it from a
 * shared object that the option ps.functions names there and that exports one symbol,
 * dtrain_function_query(). Workers need only the name.
 *
 * A function gets batches of rows. For a sparse table: one row per key. For a dense table with
 * row_length: whole rows. For other dense tables: ranges as "rows", as they were pushed or as they
 * lie on the server, those of one length together. The function cannot choose the number of rows: a
 * batch has at most those of a request (256 KiB of values), under BSP also rows of several
 * requests. It runs on the server's progress thread, under the server's lock, while every other
 * request to the server waits: it must not call dtrain, block, or throw. Calls for one server come
 * one at a time; one function may serve several servers and tables at once.
 *
 * Each call returns DTRAIN_OK, or a status < 0 with a text in batch->error; the caller of the push
 * or pull gets both. The server then restores values and state of the rows of the request, so that
 * a failed request changes nothing. (BSP: the update of a clock fails, after the pushes were
 * accepted. Rows that were updated before stay updated, and pushes and pulls fail from then on
 * until the table is restored from a checkpoint.) */
#ifndef DTRAIN_FUNCTION_H
#define DTRAIN_FUNCTION_H
#include "dtrain.h"
#ifdef __cplusplus
extern "C" {
#endif

#define DTRAIN_FUNCTION_ABI    2u /* grows when a rule here changes */
#define DTRAIN_FUNCTION_STATES 8  /* arrays that a function may keep, at most */

/* One array of state. It starts at 0, can be pulled and set, and is part of checkpoints. */
typedef struct dtrain_function_state {
    const char *name; /* 1 to 31 of [a-z0-9_]; not "values", "keys" or "steps"             */
    uint32_t dtype;   /* DTRAIN_F32, DTRAIN_F64 or DTRAIN_U64                              */
    uint32_t per_row; /* 0: one number per element; 1: one per row, which requires rows
                         (row_length) of a dense table                                     */
} dtrain_function_state_t;

/* The memory of one row, aligned for its numbers. Rows of one call do not overlap. */
typedef struct dtrain_function_row {
    uint64_t key;       /* sparse: its key; dense: its first element in the table           */
    void *values;       /* the values that the server holds                                 */
    const void *pushed; /* for update and aggregate                                         */
    void *pulled;       /* for get: the result, to be written                               */
    void *state[DTRAIN_FUNCTION_STATES]; /* in the order of dtrain_function_t.states         */
} dtrain_function_row_t;

typedef struct dtrain_function_batch {
    uint32_t struct_size;
    uint32_t dtype; /* of values, pushed and pulled                                      */
    const dtrain_function_row_t *rows;
    uint64_t count;   /* rows                                                              */
    uint64_t dim;     /* elements of each row                                              */
    uint64_t version; /* updates applied to this part of the table before                  */
    /* The parameters from the workers, with defaults instead of 0; learning_rate is the current
     * one. The function may use or ignore those that change built-in optimizers. */
    const dtrain_table_params_t *params;
    char *error;         /* buffer for the text of a failure, NUL-terminated                  */
    uint64_t error_size; /* bytes of that buffer                                              */
} dtrain_function_batch_t;

typedef dtrain_status_t (*dtrain_function_fn)(void *user, const dtrain_function_batch_t *batch);

typedef struct dtrain_function {
    uint32_t struct_size, abi; /* DTRAIN_FUNCTION_ABI at compile time                       */
    const char *name;          /* 1 to 63 of [A-Za-z0-9_.-]                                 */
    void *user;                /* first argument of each call                               */
    const dtrain_function_state_t *states; /* [state_count] */
    uint32_t state_count, reserved;
    dtrain_function_fn update; /* applies `pushed` to values and state                      */
    /* Computes the result of a pull: writes `pulled`, changes nothing else. NULL: pulls return the
     * values. For a key without a row, values are the initial ones and state is 0. */
    dtrain_function_fn get;
    /* BSP: combines `pushed`, one worker's push of a clock, with `values`, the aggregate of the
     * clock so far (which starts as a copy of the first push); there is no state. NULL: the sum. */
    dtrain_function_fn aggregate;
} dtrain_function_t;

/* The one symbol of a shared object of ps.functions. Returns the object's functions for the indices
 * 0, 1, ..., and NULL after the last, for a core of that ABI. If it has none for that ABI, it
 * returns those of its own ABI, so that the core can refuse them and name both numbers; NULL for
 * index 0 is refused, too. Names must differ. The result is never freed. */
DTRAIN_API const dtrain_function_t *dtrain_function_query(uint32_t core_abi, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif

/* Computes the counts of each operation from the lengths of its buffers and checks that they fit,
 * since the C API does not know these lengths.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_PYTHON_SHAPES_H
#define DTRAIN_PYTHON_SHAPES_H
#include "calls.h"

static int refuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    PyErr_FormatV(PyExc_ValueError, format, args);
    va_end(args);
    return 0;
}

/* Without an output the operation is in place. */
static int settle_in_place(Call *call, void **output, const char *name) {
    Buffer *send = &call->buffers[ROLE_send], *recv = &call->buffers[ROLE_recv];
    if (!send->present) return refuse("%s: this operation needs an array", name);
    if (recv->present) return 1;
    if (send->readonly)
        return refuse("%s: the array is read-only, and the result would be written to it; pass a "
                      "writable one, or another array for the result",
                      name);
    *output = send->data;
    send->written = 1;
    recv->count = send->count;
    recv->dtype = send->dtype;
    return 1;
}

static int same_dtype(const Buffer *a, const Buffer *b) {
    if (a->dtype == b->dtype) return 1;
    PyErr_SetString(PyExc_TypeError, "array and out have different types of elements; both must "
                                     "have the same");
    return 0;
}

/* Input and output hold the same `count` elements. */
static int alike(Call *call, void **output, uint64_t *count, uint32_t *dtype) {
    if (!settle_in_place(call, output, "array")) return 0;
    const Buffer *send = &call->buffers[ROLE_send], *recv = &call->buffers[ROLE_recv];
    if (!same_dtype(send, recv)) return 0;
    if (send->count != recv->count)
        return refuse("the input has %llu elements, the output %llu; both need the same",
                      (unsigned long long)send->count, (unsigned long long)recv->count);
    *count = send->count;
    *dtype = send->dtype;
    return 1;
}

/* A buffer of `blocks` blocks. The first buffer sets *count, the second one is checked. */
static int blocks_of(const Buffer *buffer, const char *what, uint64_t blocks, int *found,
                     uint64_t *count) {
    if (blocks == 0) { /* no neighbors: nothing is sent or received  */
        if (!*found) *count = 0;
        return 1;
    }
    if (!*found) {
        if (buffer->count % blocks != 0)
            return refuse("the %s has %llu elements, which are not %llu equal blocks", what,
                          (unsigned long long)buffer->count, (unsigned long long)blocks);
        *count = buffer->count / blocks;
        return *found = 1;
    }
    if (*count != 0 ? buffer->count / blocks == *count && buffer->count % blocks == 0
                    : buffer->count == 0)
        return 1;
    return refuse("the %s has %llu elements, not %llu blocks of %llu", what,
                  (unsigned long long)buffer->count, (unsigned long long)blocks,
                  (unsigned long long)*count);
}

/* send holds send_blocks, recv recv_blocks; 0: this rank has no such buffer. */
static int blocks(Call *call, uint64_t send_blocks, uint64_t recv_blocks, uint64_t *count,
                  uint32_t *dtype) {
    const Buffer *send = &call->buffers[ROLE_send], *recv = &call->buffers[ROLE_recv];
    int found = 0;
    if (send_blocks != 0 && !send->present) return refuse("this operation needs an input here");
    if (recv_blocks != 0 && !recv->present)
        return refuse("this operation needs an output here: an array for the result");
    if (send_blocks != 0 && recv_blocks != 0 && !same_dtype(send, recv)) return 0;
    *dtype = send_blocks != 0 ? send->dtype : recv->dtype;
    /* The single block comes first: it needs no division. */
    if (recv_blocks == 1 && !blocks_of(recv, "output", 1, &found, count)) return 0;
    if (send_blocks != 0 && !blocks_of(send, "input", send_blocks, &found, count)) return 0;
    return recv_blocks == 0 || blocks_of(recv, "output", recv_blocks, &found, count);
}

/* The operation does not write to its only buffer. */
static int unwritten(Call *call) {
    call->buffers[ROLE_buffer].written = 0;
    return 1;
}

/* The operation uses the whole of its only buffer. */
static int whole(Call *call, uint64_t *count, uint32_t *dtype) {
    return blocks(call, 1, 0, count, dtype);
}

/* Checks that the blocks of counts and displs (or none) lie within the buffer. */
static int within(Call *call, int counts_role, const Buffer *buffer, const char *what, int size) {
    const Buffer *counts = &call->buffers[counts_role], *displs = counts + 1;
    uint64_t packed = 0;
    if (!buffer->present) return refuse("this operation needs an %s here", what);
    for (int i = 0; i < size; i++) {
        const uint64_t *lengths = counts->data, *places = displs->data;
        uint64_t end;
        if (__builtin_add_overflow(displs->present ? places[i] : packed, lengths[i], &end) ||
            end > buffer->count)
            return refuse("the block of rank %d does not fit into the %s of %llu elements", i, what,
                          (unsigned long long)buffer->count);
        packed += lengths[i];
    }
    return 1;
}

static int check_counts(Call *call, int role, int size) {
    const Buffer *counts = &call->buffers[role], *displs = counts + 1;
    if (!counts->present) return refuse("counts are needed, one for each rank");
    if (counts->count != (uint64_t)size || (displs->present && displs->count != (uint64_t)size))
        return refuse("counts and displacements are %d numbers, one for each rank", size);
    return 1;
}

/* The same counts on all ranks. own_send: send is this rank's block, and recv holds all blocks;
 * else the other way round. */
static int ragged(Call *call, dtrain_comm_t *comm, int own_send, int has_all, uint32_t *dtype) {
    const int size = dtrain_comm_size(comm), rank = dtrain_comm_rank(comm);
    const Buffer *send = &call->buffers[ROLE_send], *recv = &call->buffers[ROLE_recv];
    const Buffer *own = own_send ? send : recv, *all = own_send ? recv : send;
    if (!check_counts(call, ROLE_counts, size)) return 0;
    const uint64_t length = ((uint64_t *)call->buffers[ROLE_counts].data)[rank];
    if (!own->present || own->count != length)
        return refuse("the %s of this rank must have %llu elements, its number in counts",
                      own_send ? "input" : "output", (unsigned long long)length);
    *dtype = own->dtype;
    if (!has_all) return 1;
    return within(call, ROLE_counts, all, own_send ? "output" : "input", size) &&
           same_dtype(own, all);
}

static int ragged_alltoall(Call *call, dtrain_comm_t *comm, uint32_t *dtype) {
    const int size = dtrain_comm_size(comm);
    const Buffer *send = &call->buffers[ROLE_send], *recv = &call->buffers[ROLE_recv];
    *dtype = send->dtype;
    return check_counts(call, ROLE_send_counts, size) &&
           check_counts(call, ROLE_recv_counts, size) &&
           within(call, ROLE_send_counts, send, "input", size) &&
           within(call, ROLE_recv_counts, recv, "output", size) && same_dtype(send, recv);
}

/* A compressor's vectors, whose length was set when it was created. */
static int vectors(Call *call, const Handle *of, void **output) {
    uint64_t count;
    uint32_t dtype;
    if (!alike(call, output, &count, &dtype)) return 0;
    if (dtype != of->dtype) {
        PyErr_SetString(PyExc_TypeError, "a compressor needs elements of f32");
        return 0;
    }
    return count == of->width ? 1
                              : refuse("the compressor is for %llu elements, the array has %llu",
                                       (unsigned long long)of->width, (unsigned long long)count);
}

/* Values of a table: a range of a dense one, or a row for each key. */
static int values_of(Call *call, const Handle *table, uint64_t *count) {
    const Buffer *values = &call->buffers[ROLE_values], *pulled = &call->buffers[ROLE_pulled];
    const Buffer *keys = &call->buffers[ROLE_keys];
    if (!values->present) return refuse("this operation needs an array of values");
    if (values->dtype != table->dtype || (pulled->present && pulled->dtype != table->dtype)) {
        PyErr_SetString(PyExc_TypeError, "the values must be of the table's dtype");
        return 0;
    }
    if (pulled->present && pulled->count != values->count)
        return refuse("the array of pulled values must be as long as the array of pushed values");
    *count = keys->present ? keys->count : values->count;
    uint64_t needed = *count;
    if (keys->present &&
        (__builtin_mul_overflow(*count, table->width, &needed) || needed != values->count))
        return refuse("%llu keys need %llu values each, not %llu in all",
                      (unsigned long long)*count, (unsigned long long)table->width,
                      (unsigned long long)values->count);
    return 1;
}

/* Pushed and pulled values; in place unless there is an output. */
static int exchanged(Call *call, const Handle *table, void **output, uint64_t *count) {
    return settle_in_place(call, output, "values") && values_of(call, table, count);
}

/* As values_of(), for a state array of the rule. */
static int state_of(Call *call, dtrain_table_t *table, uint32_t index, uint64_t *count) {
    const char *name;
    Handle of = {0};
    if (dtrain_table_describe_state(table, index, &name, &of.dtype, &of.width) < 0) {
        raise_last_error(DTRAIN_ERR_NOT_FOUND);
        return 0;
    }
    if (call->buffers[ROLE_state].present && call->buffers[ROLE_state].dtype != of.dtype) {
        PyErr_Format(PyExc_TypeError, "the state \"%s\" has another dtype; call states() for it",
                     name);
        return 0;
    }
    return values_of(call, &of, count);
}

/* An operation with keys only. */
static int keys_of(Call *call, uint64_t *count) {
    if (!call->buffers[ROLE_keys].present) return refuse("this operation needs keys");
    *count = call->buffers[ROLE_keys].count;
    return 1;
}

/* The number of neighbors in one direction: one block for each. */
static uint64_t neighbors(const dtrain_graph_t *graph, uint32_t direction) {
    const int32_t count = dtrain_graph_neighbors(graph, direction, NULL, NULL, 0);
    return count < 0 ? 0 : (uint64_t)count;
}

static int is_root(dtrain_comm_t *comm, int32_t root) { return dtrain_comm_rank(comm) == root; }

#endif

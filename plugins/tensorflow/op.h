// The definition of an op and its kernel for CPUs, as a row of a table (ops.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorflow/call.h"
#include <new>
#include <vector>

namespace dtrain::tensorflow {

struct Definition {
    const char *name;
    std::vector<const char *> inputs, outputs, attributes; // as TensorFlow writes them
    ShapeFunction shapes;
    CreateFunction create;
    ComputeFunction compute;
    DeleteFunction destroy;
};

// Output i has the shape of input i, as far as there are inputs.
void same_shapes(ShapeContext *context, Status *status);
// Nothing is known before the op has run.
void unknown_shapes(ShapeContext *context, Status *status);

// Turns lack of memory into the op's failure; no exception may reach TensorFlow.
template <typename Op> void *create_op(KernelConstruction *construction) {
    try {
        Construction attributes(construction);
        return new Op(attributes);
    } catch (const std::bad_alloc &) {
        return nullptr; // run_op() fails then
    }
}
template <typename Op> void run_op(void *op, KernelContext *context) {
    Call call(context);
    try {
        if (op == nullptr) throw std::bad_alloc();
        static_cast<Op *>(op)->run(call);
    } catch (const std::bad_alloc &) {
        call.fail(Code::resource_exhausted, "dtrain: no memory for the op");
    }
}
template <typename Op> void delete_op(void *op) { delete static_cast<Op *>(op); }

template <typename Op>
Definition define(const char *name, std::vector<const char *> inputs,
                  std::vector<const char *> outputs, std::vector<const char *> attributes,
                  ShapeFunction shapes) {
    for (const char *common : {"group: string", "timeout: int = 0"}) attributes.push_back(common);
    return {name,   std::move(inputs), std::move(outputs), std::move(attributes),
            shapes, create_op<Op>,     run_op<Op>,         delete_op<Op>};
}

// The ops, a file each or for each kind.
Definition allreduce();
Definition submit();
Definition allgather();
Definition broadcast();
Definition reduce_scatter();
Definition alltoall();
Definition barrier();
Definition join();
Definition rank();
Definition step();
std::vector<Definition> table_ops();

} // namespace dtrain::tensorflow

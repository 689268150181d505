// Registers all ops and kernels with TensorFlow when the library is loaded.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/op.h"
#include <string>

namespace dtrain::tensorflow {

void same_shapes(ShapeContext *context, Status *status) {
    Shape *shape = tf.new_shape();
    const int64_t inputs = tf.shape_inputs(context);
    for (int i = 0; i < inputs; i++) {
        tf.shape_input(context, i, shape, status);
        if (tf.code(status) != Code::ok) break;
        tf.shape_output(context, i, shape, status);
        if (tf.code(status) != Code::ok) { // no such output: the last inputs are factors
            tf.set_status(status, Code::ok, "");
            break;
        }
    }
    tf.delete_shape(shape);
}

void unknown_shapes(ShapeContext *context, Status *status) { tf.shapes_unknown(context, status); }

namespace {

std::string register_one(const Definition &op, Status *status) {
    OpBuilder *builder = tf.new_op(op.name);
    for (const char *attribute : op.attributes) tf.op_attribute(builder, attribute);
    for (const char *input : op.inputs) tf.op_input(builder, input);
    for (const char *output : op.outputs) tf.op_output(builder, output);
    tf.op_stateful(builder, true); // so that tf.function keeps the order, and runs each of them
    tf.op_shapes(builder, op.shapes);
    tf.register_op(builder, status);
    if (tf.code(status) != Code::ok) return tf.message(status);
    tf.register_kernel(op.name, tf.new_kernel(op.name, "CPU", op.create, op.compute, op.destroy),
                       status);
    return tf.code(status) != Code::ok ? tf.message(status) : "";
}

std::string register_all() {
    std::string problem = find_functions();
    if (!problem.empty()) return problem;
    std::vector<Definition> ops = table_ops();
    for (const Definition &op : {allreduce(), submit(), allgather(), broadcast(), reduce_scatter(),
                                 alltoall(), barrier(), join(), rank(), step()})
        ops.push_back(op);
    Status *status = tf.new_status();
    for (const Definition &op : ops)
        if (problem.empty()) problem = register_one(op, status);
    tf.delete_status(status);
    return problem;
}

std::string &problem() {
    static auto *const text = new std::string;
    return *text;
}

__attribute__((constructor)) void begin() {
    try {
        problem() = register_all();
    } catch (const std::bad_alloc &) {
        problem() = "no memory";
    }
}

} // namespace
} // namespace dtrain::tensorflow

// Why the ops were not registered; "" if they were.
extern "C" DTRAIN_API const char *dtrain_tensorflow_problem(void) {
    return dtrain::tensorflow::problem().c_str();
}

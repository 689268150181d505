// One run of an op: its inputs, its outputs, and its failure.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorflow/functions.h"
#include "tensorflow/types.h"
#include <cstdint>
#include <dtrain.h>
#include <string>
#include <vector>

namespace dtrain::tensorflow {

// Reads the attributes of an op. The first failure ends the construction; later reads return zeros.
class Construction {
  public:
    explicit Construction(KernelConstruction *construction);
    ~Construction();
    Construction(const Construction &) = delete;
    Construction &operator=(const Construction &) = delete;
    int64_t number(const char *name);
    std::string text(const char *name);
    std::vector<std::string> texts(const char *name);
    std::vector<int64_t> numbers(const char *name);

  private:
    bool good(); // reports a failure of the last read
    bool size(const char *name, int32_t &items, int32_t &bytes);
    KernelConstruction *construction_;
    Status *status_;
};

// A tensor of an op. The memory is TensorFlow's and stays until the op ends.
struct Tensor {
    const Type *type = nullptr;
    std::vector<int64_t> shape;
    void *data = nullptr; // of inputs: only read, unless an output has taken it over
    uint64_t elements = 0;
    uint64_t numbers() const { return elements * type->parts; } // of type->dtype
    uint64_t bytes() const { return elements * type->size(); }
    uint64_t row() const;         // elements of a slice of the first dimension
    std::string describe() const; // "float32[2,3]"
};

Code code_of(dtrain_status_t status);

class Call {
  public:
    explicit Call(KernelContext *context);
    ~Call();
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

    int inputs() const { return tf.inputs(context_); }
    // These return false once the call has failed. Outputs' shapes may come from peers and
    // programs: sizes below zero or too large are errors here, where TensorFlow would end the
    // process.
    bool input(int index, Tensor &tensor);
    bool input(int first, int count, std::vector<Tensor> &tensors);
    bool output(int index, const Type &type, std::vector<int64_t> shape, Tensor &tensor);
    // An output of the input's shape, which takes over its memory if nobody else needs it.
    bool output_like(int index, int input_index, const Tensor &input, Tensor &output);

    // Ends the op with an error; returns false.
    bool fail(Code code, const std::string &text);
    // The same with the last error of the library in this thread, or of a request that has ended.
    bool fail(dtrain_status_t status, const std::string &what);
    bool fail(Code code, const std::string &what, dtrain_request_t *request);
    bool fail(dtrain_status_t status, const std::string &what, dtrain_request_t *request) {
        return fail(code_of(status), what, request);
    }

  private:
    bool good(const char *what);
    KernelContext *context_;
    Status *status_;
};

} // namespace dtrain::tensorflow

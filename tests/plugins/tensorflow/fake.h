// A TensorFlow of a few functions, which the program exports: the library of ops finds them as it
// finds the real ones, and tests run its kernels without TensorFlow.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorflow/abi.h"
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace dtrain::tensorflow {

struct Status {
    Code code = Code::ok;
    std::string text;
};
using Value = std::variant<int64_t, std::string, std::vector<int64_t>, std::vector<std::string>>;
struct KernelConstruction {
    std::map<std::string, Value> attributes;
    Status failure;
};
// A tensor whose bytes are shared by all its references, as TensorFlow's are.
struct Buffer {
    int type = 1;
    std::vector<int64_t> shape;
    std::shared_ptr<std::vector<std::byte>> bytes;
};
struct KernelContext {
    std::vector<Buffer> inputs, outputs;
    bool forwards = false; // inputs may become outputs
    Status failure;
};
struct KernelBuilder {
    CreateFunction create;
    ComputeFunction compute;
    DeleteFunction destroy;
};
struct OpBuilder {
    std::string name;
    std::vector<std::string> parts;
    bool stateful = false;
};

// What the library has registered.
struct Registered {
    OpBuilder op;
    KernelBuilder kernel{};
};
std::map<std::string, Registered> &registered();
// How many inputs kernels have asked for.
inline std::atomic<int> inputs_read = 0;

template <typename Number>
Buffer tensor(int type, std::vector<int64_t> shape, std::vector<Number> numbers) {
    Buffer made{type, std::move(shape),
                std::make_shared<std::vector<std::byte>>(numbers.size() * sizeof(Number))};
    if (!numbers.empty()) std::memcpy(made.bytes->data(), numbers.data(), made.bytes->size());
    return made;
}
inline Buffer floats(std::vector<int64_t> shape, std::vector<float> numbers) {
    return tensor(1, std::move(shape), std::move(numbers));
}
inline Buffer longs(std::vector<int64_t> shape, std::vector<int64_t> numbers) {
    return tensor(9, std::move(shape), std::move(numbers));
}
template <typename Number> std::vector<Number> numbers_of(const Buffer &buffer) {
    std::vector<Number> numbers(buffer.bytes->size() / sizeof(Number));
    if (!numbers.empty()) std::memcpy(numbers.data(), buffer.bytes->data(), buffer.bytes->size());
    return numbers;
}

// A kernel of the library, made for some attributes.
class Kernel {
  public:
    Kernel(const std::string &op, std::map<std::string, Value> attributes);
    ~Kernel();
    Kernel(const Kernel &) = delete;
    Kernel &operator=(const Kernel &) = delete;
    // Runs it with `outputs` outputs; the context has them, or the failure.
    KernelContext run(std::vector<Buffer> inputs, size_t outputs, bool forwards = false);

  private:
    KernelBuilder functions_;
    void *kernel_;
};

} // namespace dtrain::tensorflow

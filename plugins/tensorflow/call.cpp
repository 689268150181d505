// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/call.h"
#include <algorithm>
#include <utility>

namespace dtrain::tensorflow {

namespace {

// TensorFlow replaces UNAVAILABLE by INTERNAL unless the op is one of its own that communicate, so
// a lost peer is ABORTED.
struct Meaning {
    dtrain_status_t status;
    Code code;
};
constexpr Meaning meanings[] = {
    {DTRAIN_ERR_INVALID, Code::invalid_argument},
    {DTRAIN_ERR_NO_MEMORY, Code::resource_exhausted},
    {DTRAIN_ERR_UNSUPPORTED, Code::unimplemented},
    {DTRAIN_ERR_STATE, Code::failed_precondition},
    {DTRAIN_ERR_BUSY, Code::failed_precondition},
    {DTRAIN_ERR_TIMEOUT, Code::deadline_exceeded},
    {DTRAIN_ERR_CANCELED, Code::cancelled},
    {DTRAIN_ERR_NOT_FOUND, Code::not_found},
    {DTRAIN_ERR_LIMIT, Code::resource_exhausted},
    {DTRAIN_ERR_CORRUPT, Code::data_loss},
    {DTRAIN_ERR_CONFIG, Code::failed_precondition},
    {DTRAIN_ERR_AUTH, Code::permission_denied},
    {DTRAIN_ERR_PEER, Code::aborted},
    {DTRAIN_ERR_ABORTED, Code::aborted},
    {DTRAIN_ERR_MISMATCH, Code::failed_precondition},
    {DTRAIN_ERR_FENCED, Code::aborted},
};

} // namespace

Code code_of(dtrain_status_t status) {
    for (const Meaning &meaning : meanings)
        if (meaning.status == status) return meaning.code;
    return Code::internal;
}

Construction::Construction(KernelConstruction *construction)
    : construction_(construction), status_(tf.new_status()) {}

Construction::~Construction() { tf.delete_status(status_); }

bool Construction::good() {
    if (tf.code(status_) == Code::ok) return true;
    tf.construction_failed(construction_, status_);
    tf.set_status(status_, Code::ok, "");
    return false;
}

bool Construction::size(const char *name, int32_t &items, int32_t &bytes) {
    tf.attribute_size(construction_, name, &items, &bytes, status_);
    return good();
}

int64_t Construction::number(const char *name) {
    int64_t value = 0;
    tf.attribute_number(construction_, name, &value, status_);
    return good() ? value : 0;
}

std::vector<int64_t> Construction::numbers(const char *name) {
    int32_t items = 0, bytes = 0;
    if (!size(name, items, bytes) || items <= 0) return {};
    std::vector<int64_t> values(static_cast<size_t>(items));
    tf.attribute_numbers(construction_, name, values.data(), items, status_);
    if (!good()) values.clear();
    return values;
}

std::string Construction::text(const char *name) {
    int32_t items = 0, bytes = 0;
    if (!size(name, items, bytes) || bytes <= 0) return {};
    std::string value(static_cast<size_t>(bytes), '\0');
    tf.attribute_text(construction_, name, value.data(), value.size(), status_);
    return good() ? value : std::string();
}

std::vector<std::string> Construction::texts(const char *name) {
    int32_t items = 0, bytes = 0;
    if (!size(name, items, bytes) || items <= 0) return {};
    std::vector<char *> starts(static_cast<size_t>(items));
    std::vector<size_t> lengths(static_cast<size_t>(items));
    std::string storage(static_cast<size_t>(std::max(bytes, 1)), '\0');
    tf.attribute_texts(construction_, name, starts.data(), lengths.data(), items, storage.data(),
                       storage.size(), status_);
    if (!good()) return {};
    std::vector<std::string> values;
    for (size_t i = 0; i < starts.size(); i++) values.emplace_back(starts[i], lengths[i]);
    return values;
}

uint64_t Tensor::row() const {
    uint64_t product = 1;
    for (size_t i = 1; i < shape.size(); i++) product *= static_cast<uint64_t>(shape[i]);
    return product;
}

std::string Tensor::describe() const {
    std::string text = type->name;
    text += '[';
    for (size_t i = 0; i < shape.size(); i++)
        text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
    return text + ']';
}

Call::Call(KernelContext *context) : context_(context), status_(tf.new_status()) {}

Call::~Call() { tf.delete_status(status_); }

bool Call::good(const char *what) {
    if (tf.code(status_) == Code::ok) return true;
    const std::string text = tf.message(status_);
    return fail(tf.code(status_), std::string("dtrain: ") + what + ": " + text);
}

bool Call::fail(Code code, const std::string &text) {
    tf.set_status(status_, code, text.c_str());
    tf.failed(context_, status_);
    return false;
}

bool Call::fail(dtrain_status_t status, const std::string &what) {
    std::string text(dtrain_last_error(nullptr, 0) + 1, '\0');
    dtrain_last_error(text.data(), text.size());
    text.pop_back();
    return fail(code_of(status),
                "dtrain: " + what + ": " + text + " (" + dtrain_status_name(status) + ")");
}

bool Call::fail(Code code, const std::string &what, dtrain_request_t *request) {
    std::string text(dtrain_request_error(request, nullptr, 0) + 1, '\0');
    dtrain_request_error(request, text.data(), text.size());
    text.pop_back();
    return fail(code, "dtrain: " + what + ": " + text + " (" +
                          dtrain_status_name(dtrain_request_test(request)) + ")");
}

bool Call::input(int index, Tensor &tensor) {
    Buffer *buffer = nullptr;
    tf.input(context_, index, &buffer, status_);
    if (!good("input")) return false;
    tensor.type = find_type(tf.tensor_type(buffer));
    tensor.elements = 1;
    tensor.shape.resize(static_cast<size_t>(tf.tensor_rank(buffer)));
    for (size_t i = 0; i < tensor.shape.size(); i++) {
        tensor.shape[i] = tf.tensor_dimension(buffer, static_cast<int>(i));
        tensor.elements *= static_cast<uint64_t>(tensor.shape[i]);
    }
    tensor.data = tf.tensor_data(buffer);
    // The op holds the memory anyway; a second reference would keep outputs from taking it over.
    tf.delete_tensor(buffer);
    return tensor.type != nullptr ||
           fail(Code::invalid_argument, "dtrain: an input has a type that cannot travel");
}

bool Call::input(int first, int count, std::vector<Tensor> &tensors) {
    tensors.resize(static_cast<size_t>(count));
    for (int i = 0; i < count; i++)
        if (!input(first + i, tensors[static_cast<size_t>(i)])) return false;
    return true;
}

bool Call::output(int index, const Type &type, std::vector<int64_t> shape, Tensor &tensor) {
    constexpr uint64_t most = UINT64_C(1) << 47; // bytes; the addresses of a process
    tensor.type = &type;
    tensor.shape = std::move(shape);
    tensor.elements = 1;
    for (const int64_t size : tensor.shape) {
        if (size < 0 ||
            (size > 0 && tensor.elements > most / type.size() / static_cast<uint64_t>(size)))
            return fail(Code::invalid_argument,
                        "dtrain: no tensor can have the shape " + tensor.describe());
        tensor.elements *= static_cast<uint64_t>(size);
    }
    Buffer *buffer =
        tf.allocate_output(context_, index, type.number, tensor.shape.data(),
                           static_cast<int>(tensor.shape.size()), tensor.bytes(), status_);
    if (!good("output")) return false;
    tensor.data = tf.tensor_data(buffer);
    tf.delete_tensor(buffer);
    return true;
}

bool Call::output_like(int index, int input_index, const Tensor &input, Tensor &output) {
    output = input;
    int forwarded = -1;
    Buffer *buffer = tf.forward_output(context_, &input_index, 1, index, input.shape.data(),
                                       static_cast<int>(input.shape.size()), &forwarded, status_);
    if (!good("output")) return false;
    output.data = tf.tensor_data(buffer);
    tf.delete_tensor(buffer);
    return true;
}

} // namespace dtrain::tensorflow

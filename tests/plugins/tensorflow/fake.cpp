// SPDX-License-Identifier: Apache-2.0
#include "plugins/tensorflow/fake.h"
#include <cstdlib>

namespace dtrain::tensorflow {

std::map<std::string, Registered> &registered() {
    static std::map<std::string, Registered> all;
    return all;
}

Kernel::Kernel(const std::string &op, std::map<std::string, Value> attributes)
    : functions_(registered().at(op).kernel) {
    attributes.try_emplace("timeout", INT64_C(0));
    KernelConstruction construction{std::move(attributes), {}};
    kernel_ = functions_.create(&construction);
    if (construction.failure.code != Code::ok) abort(); // a test has forgotten an attribute
}

Kernel::~Kernel() { functions_.destroy(kernel_); }

KernelContext Kernel::run(std::vector<Buffer> inputs, size_t outputs, bool forwards) {
    KernelContext context;
    context.inputs = std::move(inputs);
    context.outputs.resize(outputs);
    context.forwards = forwards;
    functions_.compute(kernel_, &context);
    return context;
}

namespace {

Buffer *allocate(KernelContext *context, int index, int type, const int64_t *shape, int rank) {
    static const std::map<int, size_t> sizes = {{1, 4}, {2, 8}, {3, 4}, {9, 8}, {10, 1}};
    size_t bytes = sizes.at(type);
    Buffer made{type, {shape, shape + rank}, nullptr};
    for (const int64_t size : made.shape) bytes *= static_cast<size_t>(size);
    made.bytes = std::make_shared<std::vector<std::byte>>(bytes);
    context->outputs.at(static_cast<size_t>(index)) = made;
    return new Buffer(made);
}

template <typename Type> const Type &attribute(KernelConstruction *construction, const char *name) {
    return std::get<Type>(construction->attributes.at(name));
}

} // namespace
} // namespace dtrain::tensorflow

using namespace dtrain::tensorflow;

extern "C" {
#define EXPORTED __attribute__((visibility("default")))
EXPORTED Status *TF_NewStatus(void) { return new Status; }
EXPORTED void TF_DeleteStatus(Status *status) { delete status; }
EXPORTED void TF_SetStatus(Status *status, Code code, const char *text) { *status = {code, text}; }
EXPORTED Code TF_GetCode(const Status *status) { return status->code; }
EXPORTED const char *TF_Message(const Status *status) { return status->text.c_str(); }

EXPORTED void TF_DeleteTensor(Buffer *buffer) { delete buffer; }
EXPORTED int TF_TensorType(const Buffer *buffer) { return buffer->type; }
EXPORTED int TF_NumDims(const Buffer *buffer) { return static_cast<int>(buffer->shape.size()); }
EXPORTED int64_t TF_Dim(const Buffer *buffer, int index) {
    return buffer->shape.at(static_cast<size_t>(index));
}
EXPORTED void *TF_TensorData(const Buffer *buffer) { return buffer->bytes->data(); }

EXPORTED OpBuilder *TF_NewOpDefinitionBuilder(const char *name) {
    return new OpBuilder{name, {}, false};
}
EXPORTED void TF_OpDefinitionBuilderAddAttr(OpBuilder *op, const char *part) {
    op->parts.push_back(part);
}
EXPORTED void TF_OpDefinitionBuilderAddInput(OpBuilder *op, const char *part) {
    op->parts.push_back(part);
}
EXPORTED void TF_OpDefinitionBuilderAddOutput(OpBuilder *op, const char *part) {
    op->parts.push_back(part);
}
EXPORTED void TF_OpDefinitionBuilderSetIsStateful(OpBuilder *op, bool stateful) {
    op->stateful = stateful;
}
EXPORTED void TF_OpDefinitionBuilderSetShapeInferenceFunction(OpBuilder *, ShapeFunction) {}
EXPORTED void TF_RegisterOpDefinition(OpBuilder *op, Status *) {
    registered()[op->name].op = *op;
    delete op;
}
EXPORTED Shape *TF_NewShapeHandle(void) { return nullptr; }
EXPORTED void TF_DeleteShapeHandle(Shape *) {}
EXPORTED int64_t TF_ShapeInferenceContextNumInputs(ShapeContext *) { return 0; }
EXPORTED void TF_ShapeInferenceContextGetInput(ShapeContext *, int, Shape *, Status *) {}
EXPORTED void TF_ShapeInferenceContextSetOutput(ShapeContext *, int, Shape *, Status *) {}
EXPORTED void TF_ShapeInferenceContextSetUnknownShape(ShapeContext *, Status *) {}

EXPORTED KernelBuilder *TF_NewKernelBuilder(const char *, const char *, CreateFunction create,
                                            ComputeFunction compute, DeleteFunction destroy) {
    return new KernelBuilder{create, compute, destroy};
}
EXPORTED void TF_RegisterKernelBuilder(const char *name, KernelBuilder *kernel, Status *) {
    registered()[name].kernel = *kernel;
    delete kernel;
}

EXPORTED void TF_OpKernelConstruction_GetAttrSize(KernelConstruction *construction,
                                                  const char *name, int32_t *items, int32_t *bytes,
                                                  Status *) {
    const Value &value = construction->attributes.at(name);
    *items = *bytes = -1;
    if (const auto *text = std::get_if<std::string>(&value))
        *bytes = static_cast<int32_t>(text->size());
    if (const auto *list = std::get_if<std::vector<int64_t>>(&value))
        *items = static_cast<int32_t>(list->size());
    if (const auto *list = std::get_if<std::vector<std::string>>(&value)) {
        *items = static_cast<int32_t>(list->size());
        *bytes = 0;
        for (const std::string &text : *list) *bytes += static_cast<int32_t>(text.size());
    }
}
EXPORTED void TF_OpKernelConstruction_GetAttrString(KernelConstruction *construction,
                                                    const char *name, char *text, size_t length,
                                                    Status *) {
    std::memcpy(text, attribute<std::string>(construction, name).data(), length);
}
EXPORTED void TF_OpKernelConstruction_GetAttrStringList(KernelConstruction *construction,
                                                        const char *name, char **texts,
                                                        size_t *lengths, int count, void *storage,
                                                        size_t, Status *) {
    auto *at = static_cast<char *>(storage);
    const auto &list = attribute<std::vector<std::string>>(construction, name);
    for (size_t i = 0; i < static_cast<size_t>(count); at += list[i].size(), i++) {
        texts[i] = at;
        lengths[i] = list[i].size();
        std::memcpy(at, list[i].data(), list[i].size());
    }
}
EXPORTED void TF_OpKernelConstruction_GetAttrInt64(KernelConstruction *construction,
                                                   const char *name, int64_t *value, Status *) {
    *value = attribute<int64_t>(construction, name);
}
EXPORTED void TF_OpKernelConstruction_GetAttrInt64List(KernelConstruction *construction,
                                                       const char *name, int64_t *values, int count,
                                                       Status *) {
    std::memcpy(values, attribute<std::vector<int64_t>>(construction, name).data(),
                static_cast<size_t>(count) * sizeof *values);
}
EXPORTED void TF_OpKernelConstruction_Failure(KernelConstruction *construction, Status *status) {
    construction->failure = *status;
}

EXPORTED int TF_NumInputs(KernelContext *context) {
    return static_cast<int>(context->inputs.size());
}
EXPORTED int TF_NumOutputs(KernelContext *context) {
    return static_cast<int>(context->outputs.size());
}
EXPORTED void TF_GetInput(KernelContext *context, int index, Buffer **buffer, Status *) {
    inputs_read++;
    *buffer = new Buffer(context->inputs.at(static_cast<size_t>(index)));
}
EXPORTED int TF_ExpectedOutputDataType(KernelContext *, int) { return 1; }
EXPORTED Buffer *TF_AllocateOutput(KernelContext *context, int index, int type,
                                   const int64_t *shape, int rank, size_t, Status *) {
    return allocate(context, index, type, shape, rank);
}
EXPORTED Buffer *TF_ForwardInputOrAllocateOutput(KernelContext *context, const int *candidates, int,
                                                 int index, const int64_t *shape, int rank,
                                                 int *forwarded, Status *) {
    const Buffer &input = context->inputs.at(static_cast<size_t>(candidates[0]));
    if (!context->forwards) return allocate(context, index, input.type, shape, rank);
    *forwarded = candidates[0];
    context->outputs.at(static_cast<size_t>(index)) = input;
    return new Buffer(input);
}
EXPORTED void TF_OpKernelContext_Failure(KernelContext *context, Status *status) {
    context->failure = *status;
}
}

// What TensorFlow's C API and this library agree on, in all versions from 2.13. These declarations
// are our own: TensorFlow is not needed to build the library. Its functions are looked up when the
// library is loaded (functions.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

namespace dtrain::tensorflow {

// Objects of TensorFlow, known by address only.
struct Status;             // TF_Status
struct Buffer;             // TF_Tensor
struct OpBuilder;          // TF_OpDefinitionBuilder
struct KernelBuilder;      // TF_KernelBuilder
struct KernelConstruction; // TF_OpKernelConstruction
struct KernelContext;      // TF_OpKernelContext
struct Shape;              // TF_ShapeHandle
struct ShapeContext;       // TF_ShapeInferenceContext

using CreateFunction = void *(*)(KernelConstruction *);
using ComputeFunction = void (*)(void *, KernelContext *);
using DeleteFunction = void (*)(void *);
using ShapeFunction = void (*)(ShapeContext *, Status *);

// Codes of TF_Code that this library sets; each becomes an exception of tf.errors.
enum class Code : int {
    ok = 0,
    cancelled = 1,
    invalid_argument = 3,
    deadline_exceeded = 4,
    not_found = 5,
    permission_denied = 7,
    resource_exhausted = 8,
    failed_precondition = 9,
    aborted = 10,
    unimplemented = 12,
    internal = 13,
    data_loss = 15
};

// X(member, name in TensorFlow, type): every function that is used.
#define DTRAIN_TENSORFLOW_FUNCTIONS(X)                                                             \
    X(new_status, "TF_NewStatus", Status *(void))                                                  \
    X(delete_status, "TF_DeleteStatus", void(Status *))                                            \
    X(set_status, "TF_SetStatus", void(Status *, Code, const char *))                              \
    X(code, "TF_GetCode", Code(const Status *))                                                    \
    X(message, "TF_Message", const char *(const Status *))                                         \
    X(delete_tensor, "TF_DeleteTensor", void(Buffer *))                                            \
    X(tensor_type, "TF_TensorType", int(const Buffer *))                                           \
    X(tensor_rank, "TF_NumDims", int(const Buffer *))                                              \
    X(tensor_dimension, "TF_Dim", int64_t(const Buffer *, int))                                    \
    X(tensor_data, "TF_TensorData", void *(const Buffer *))                                        \
    X(new_op, "TF_NewOpDefinitionBuilder", OpBuilder *(const char *))                              \
    X(op_attribute, "TF_OpDefinitionBuilderAddAttr", void(OpBuilder *, const char *))              \
    X(op_input, "TF_OpDefinitionBuilderAddInput", void(OpBuilder *, const char *))                 \
    X(op_output, "TF_OpDefinitionBuilderAddOutput", void(OpBuilder *, const char *))               \
    X(op_stateful, "TF_OpDefinitionBuilderSetIsStateful", void(OpBuilder *, bool))                 \
    X(op_shapes, "TF_OpDefinitionBuilderSetShapeInferenceFunction",                                \
      void(OpBuilder *, ShapeFunction))                                                            \
    X(register_op, "TF_RegisterOpDefinition", void(OpBuilder *, Status *))                         \
    X(new_shape, "TF_NewShapeHandle", Shape *(void))                                               \
    X(delete_shape, "TF_DeleteShapeHandle", void(Shape *))                                         \
    X(shape_inputs, "TF_ShapeInferenceContextNumInputs", int64_t(ShapeContext *))                  \
    X(shape_input, "TF_ShapeInferenceContextGetInput",                                             \
      void(ShapeContext *, int, Shape *, Status *))                                                \
    X(shape_output, "TF_ShapeInferenceContextSetOutput",                                           \
      void(ShapeContext *, int, Shape *, Status *))                                                \
    X(shapes_unknown, "TF_ShapeInferenceContextSetUnknownShape", void(ShapeContext *, Status *))   \
    X(new_kernel, "TF_NewKernelBuilder",                                                           \
      KernelBuilder *(const char *, const char *, CreateFunction, ComputeFunction,                 \
                      DeleteFunction))                                                             \
    X(register_kernel, "TF_RegisterKernelBuilder", void(const char *, KernelBuilder *, Status *))  \
    X(attribute_size, "TF_OpKernelConstruction_GetAttrSize",                                       \
      void(KernelConstruction *, const char *, int32_t *, int32_t *, Status *))                    \
    X(attribute_text, "TF_OpKernelConstruction_GetAttrString",                                     \
      void(KernelConstruction *, const char *, char *, size_t, Status *))                          \
    X(attribute_texts, "TF_OpKernelConstruction_GetAttrStringList",                                \
      void(KernelConstruction *, const char *, char **, size_t *, int, void *, size_t, Status *))  \
    X(attribute_number, "TF_OpKernelConstruction_GetAttrInt64",                                    \
      void(KernelConstruction *, const char *, int64_t *, Status *))                               \
    X(attribute_numbers, "TF_OpKernelConstruction_GetAttrInt64List",                               \
      void(KernelConstruction *, const char *, int64_t *, int, Status *))                          \
    X(construction_failed, "TF_OpKernelConstruction_Failure",                                      \
      void(KernelConstruction *, Status *))                                                        \
    X(inputs, "TF_NumInputs", int(KernelContext *))                                                \
    X(outputs, "TF_NumOutputs", int(KernelContext *))                                              \
    X(input, "TF_GetInput", void(KernelContext *, int, Buffer **, Status *))                       \
    X(output_type, "TF_ExpectedOutputDataType", int(KernelContext *, int))                         \
    X(allocate_output, "TF_AllocateOutput",                                                        \
      Buffer *(KernelContext *, int, int, const int64_t *, int, size_t, Status *))                 \
    X(forward_output, "TF_ForwardInputOrAllocateOutput",                                           \
      Buffer *(KernelContext *, const int *, int, int, const int64_t *, int, int *, Status *))     \
    X(failed, "TF_OpKernelContext_Failure", void(KernelContext *, Status *))

} // namespace dtrain::tensorflow

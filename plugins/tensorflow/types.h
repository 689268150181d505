// TensorFlow's types of elements and what they travel as.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::tensorflow {

struct Type {
    int number; // TF_DataType
    const char *name;
    uint32_t dtype; // DTRAIN_*
    uint32_t parts; // numbers of this dtype in an element
    bool numbers;   // reductions are defined
    uint32_t size() const;
};

// Returns nullptr for types that cannot travel (strings, resources, variants).
const Type *find_type(int number);
const Type *find_dtype(uint32_t dtype);

// The lists of types for definitions of ops.
#define DTRAIN_TENSORFLOW_NUMBERS                                                                  \
    "half, bfloat16, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, "    \
    "complex64, complex128"
#define DTRAIN_TENSORFLOW_TYPES DTRAIN_TENSORFLOW_NUMBERS ", bool"

// Whether a reduction of numbers of this type is that of their parts: complex numbers have sums and
// averages only.
bool reduces(const Type &type, uint32_t op);

// Names of reductions, for errors; "unknown" for others.
const char *op_name(int64_t op);

} // namespace dtrain::tensorflow

// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/types.h"
#include <dtrain.h>
#include <iterator>

namespace dtrain::tensorflow {

namespace {

constexpr Type types[] = {
    {1, "float32", DTRAIN_F32, 1, true},   {2, "float64", DTRAIN_F64, 1, true},
    {3, "int32", DTRAIN_I32, 1, true},     {4, "uint8", DTRAIN_U8, 1, true},
    {5, "int16", DTRAIN_I16, 1, true},     {6, "int8", DTRAIN_I8, 1, true},
    {8, "complex64", DTRAIN_F32, 2, true}, {9, "int64", DTRAIN_I64, 1, true},
    {10, "bool", DTRAIN_U8, 1, false},     {14, "bfloat16", DTRAIN_BF16, 1, true},
    {17, "uint16", DTRAIN_U16, 1, true},   {18, "complex128", DTRAIN_F64, 2, true},
    {19, "float16", DTRAIN_F16, 1, true},  {22, "uint32", DTRAIN_U32, 1, true},
    {23, "uint64", DTRAIN_U64, 1, true},
};

constexpr const char *ops[] = {"unknown", "sum",    "average", "product", "min",
                               "max",     "bitand", "bitor",   "bitxor",  "adasum"};

} // namespace

uint32_t Type::size() const { return parts * static_cast<uint32_t>(dtrain_dtype_size(dtype)); }

const Type *find_type(int number) {
    for (const Type &type : types)
        if (type.number == number) return &type;
    return nullptr;
}

const Type *find_dtype(uint32_t dtype) {
    for (const Type &type : types)
        if (type.dtype == dtype && type.parts == 1 && type.numbers) return &type;
    return nullptr;
}

bool reduces(const Type &type, uint32_t op) {
    return type.parts == 1 || op == DTRAIN_SUM || op == DTRAIN_AVG;
}

const char *op_name(int64_t op) {
    return op > 0 && op < static_cast<int64_t>(std::size(ops)) ? ops[op] : ops[0];
}

} // namespace dtrain::tensorflow

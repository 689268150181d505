// The names and properties of the dtype and op numbers of dtrain.h.
// SPDX-License-Identifier: Apache-2.0
#include "device/kernels.h"

#include "dtrain_basics.h"

namespace dtrain::device {
namespace {

struct Dtype {
    const char *name;
    uint64_t size;
    bool integer;
};

constexpr Dtype dtypes[] = {
    {nullptr, 0, false}, // 0 is no dtype
    {"f32", 4, false},   {"f64", 8, false}, {"f16", 2, false}, {"bf16", 2, false},
    {"i8", 1, true},     {"u8", 1, true},   {"i16", 2, true},  {"u16", 2, true},
    {"i32", 4, true},    {"u32", 4, true},  {"i64", 8, true},  {"u64", 8, true},
};
static_assert(sizeof dtypes / sizeof *dtypes == DTRAIN_U64 + 1);

constexpr const char *ops[] = {nullptr, "sum",  "avg", "prod", "min",
                               "max",   "band", "bor", "bxor", "adasum"};
static_assert(sizeof ops / sizeof *ops == DTRAIN_ADASUM + 1);

const Dtype &lookup(uint32_t dtype) { return dtypes[dtype <= DTRAIN_U64 ? dtype : 0]; }

} // namespace

uint64_t dtype_size(uint32_t dtype) { return lookup(dtype).size; }

const char *dtype_name(uint32_t dtype) { return lookup(dtype).name; }

const char *op_name(uint32_t op) { return op <= DTRAIN_ADASUM ? ops[op] : nullptr; }

bool is_floating(uint32_t dtype) { return dtype_name(dtype) != nullptr && !lookup(dtype).integer; }

bool op_valid(uint32_t op, uint32_t dtype) {
    if (op_name(op) == nullptr || dtype_name(dtype) == nullptr) return false;
    if (op == DTRAIN_ADASUM) return is_floating(dtype);
    return op < DTRAIN_BAND || lookup(dtype).integer;
}

} // namespace dtrain::device

// Launches kernels.
// SPDX-License-Identifier: Apache-2.0
#include "launch.h"

namespace dtrain::cuda {
namespace {

constexpr uint32_t element_bytes[dtype_count] = {1, 4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8};

bool is_half(uint32_t dtype) { return dtype == DTRAIN_F16 || dtype == DTRAIN_BF16; }

Status spread(dtrain_dv_queue &queue, const dtrain_dv_work_t &work) {
    SpreadArguments arguments{};
    std::copy_n(work.dsts, work.m, arguments.dsts);
    arguments.src = work.srcs[0];
    arguments.bytes = work.count;
    arguments.m = work.m;
    constexpr uint64_t per_thread = 16;
    return launch(queue, 0, kernel_spread, arguments, (work.count + per_thread - 1) / per_thread);
}

Status reduce(dtrain_dv_queue &queue, const dtrain_dv_work_t &work) {
    if (work.dtype == 0) return spread(queue, work);
    if (work.op < DTRAIN_SUM || work.op > DTRAIN_BXOR)
        return refuse(queue, "there is no kernel for this op");
    ReduceArguments arguments{};
    std::copy_n(work.dsts, work.m, arguments.dsts);
    std::copy_n(work.srcs, work.n, arguments.srcs);
    arguments.count = work.count;
    arguments.m = work.m;
    arguments.n = work.n;
    return launch(queue, work.dtype, Kernel(kernel_sum + work.op - DTRAIN_SUM), arguments,
                  work.count);
}
static_assert(kernel_bxor - kernel_sum == DTRAIN_BXOR - DTRAIN_SUM);

Status scale(dtrain_dv_queue &queue, const dtrain_dv_work_t &work) {
    if (work.divisor == 0) return refuse(queue, "a division by 0");
    const ScaleArguments arguments{work.dsts[0], work.srcs[0], work.count, work.divisor, 0};
    return launch(queue, work.dtype, kernel_scale, arguments, work.count);
}

Status multiply(dtrain_dv_queue &queue, const dtrain_dv_work_t &work) {
    const MultiplyArguments arguments{work.dsts[0], work.srcs[0], work.count, work.weights[0]};
    return launch(queue, work.dtype, kernel_multiply, arguments, work.count);
}

Status weigh(dtrain_dv_queue &queue, const dtrain_dv_work_t &work) {
    WeighArguments arguments{};
    arguments.dst = work.dsts[0];
    arguments.count = work.count;
    arguments.n = work.n;
    std::copy_n(work.srcs, work.n, arguments.srcs);
    std::copy_n(work.weights, work.n, arguments.weights);
    return launch(queue, work.dtype, kernel_weigh, arguments, work.count);
}

Status convert(dtrain_dv_queue &queue, const dtrain_dv_work_t &work) {
    const bool widen = is_half(work.dtype) && work.op == DTRAIN_F32;
    const bool narrow = work.dtype == DTRAIN_F32 && is_half(work.op);
    if (!widen && !narrow) return refuse(queue, "conversions are between f32 and f16 or bf16");
    const ConvertArguments arguments{work.dsts[0], work.srcs[0], work.count};
    return launch(queue, widen ? work.dtype : work.op, widen ? kernel_widen : kernel_narrow,
                  arguments, work.count);
}

Status move_rows(dtrain_dv_queue &queue, const dtrain_dv_work_t &work) {
    if (work.rows == nullptr || work.row_bytes == 0) return refuse(queue, "there are no rows");
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(work.count, work.row_bytes, &bytes))
        return refuse(queue, "the rows have more than 2^64 bytes");
    const RowArguments arguments{work.dsts[0], work.srcs[0],   work.rows,
                                 work.count,   work.row_bytes, work.row_limit};
    const Kernel kernel = work.kind == DTRAIN_DV_GATHER ? kernel_gather : kernel_scatter;
    return launch(queue, 0, kernel, arguments, bytes);
}

Status round_at_random(dtrain_dv_queue &queue, const dtrain_dv_work_t &work) {
    if (work.dtype != DTRAIN_F32 || !is_half(work.op))
        return refuse(queue, "rounding is from f32 to f16 or bf16");
    const RoundArguments arguments{work.dsts[0], work.srcs[0], work.count, work.seed, work.first};
    return launch(queue, work.op, kernel_round, arguments, work.count);
}

struct Row {
    uint32_t kind;
    bool many_dsts, many_srcs, weights;
    Status (*submit)(dtrain_dv_queue &, const dtrain_dv_work_t &);
};
constexpr Row rows[] = {
    {DTRAIN_DV_REDUCE, true, true, false, reduce},
    {DTRAIN_DV_SCALE, false, false, false, scale},
    {DTRAIN_DV_MULTIPLY, false, false, true, multiply},
    {DTRAIN_DV_WEIGH, false, true, true, weigh},
    {DTRAIN_DV_CONVERT, false, false, false, convert},
    {DTRAIN_DV_GATHER, false, false, false, move_rows},
    {DTRAIN_DV_SCATTER, false, false, false, move_rows},
    {DTRAIN_DV_UPDATE, false, false, false, update},
    {DTRAIN_DV_ROUND, false, false, false, round_at_random},
};

const char *what_is_wrong(const Row &row, const dtrain_dv_work_t &work) {
    if (work.m < 1 || work.m > (row.many_dsts ? max_operands : 1)) return "too many or no dsts";
    if (work.n < 1 || work.n > (row.many_srcs ? max_operands : 1)) return "too many or no srcs";
    if (work.dsts == nullptr || work.srcs == nullptr) return "dsts or srcs is NULL";
    if (row.weights && work.weights == nullptr) return "weights is NULL";
    if (row.submit == move_rows) return nullptr;
    if (work.kind == DTRAIN_DV_REDUCE && work.dtype == 0)
        return work.n == 1 ? nullptr : "several srcs without a dtype";
    if (work.dtype == 0 || work.dtype >= dtype_count) return "an unknown dtype";
    const bool converts = work.kind == DTRAIN_DV_CONVERT || work.kind == DTRAIN_DV_ROUND;
    const uint32_t from = element_bytes[work.dtype];
    const uint32_t to = !converts ? from : is_half(work.op) ? 2 : 4;
    const auto odd = [](const void *p, uint32_t size) {
        return reinterpret_cast<uintptr_t>(p) % size != 0;
    };
    for (uint32_t k = 0; k < work.m; k++)
        if (odd(work.dsts[k], to)) return "a dst is not aligned to its elements";
    for (uint32_t k = 0; k < work.n; k++)
        if (odd(work.srcs[k], from)) return "a src is not aligned to its elements";
    return nullptr;
}

} // namespace

Status run(dtrain_dv_queue_t *queue, const dtrain_dv_work_t *given) {
    const dtrain_dv_work_t work = taken(*given);
    for (const Row &row : rows) {
        if (row.kind != work.kind) continue;
        if (const char *why = what_is_wrong(row, work)) return refuse(*queue, why);
        if (work.kind == DTRAIN_DV_UPDATE && !has_rule(work.op))
            return fail(queue->device.host, DTRAIN_ERR_UNSUPPORTED,
                        "cuda: there is no kernel for the rule %u", work.op);
        if (work.count == 0) return queue->device.check();
        return row.submit(*queue, work);
    }
    return fail(queue->device.host, DTRAIN_ERR_UNSUPPORTED, "cuda: there is no work of the kind %u",
                work.kind);
}

} // namespace dtrain::cuda

// The local part of a schedule's run: its arithmetic, and its records for the timeline.
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"
#include "device/kernels.h"
#include "engine/executor.h"

#include <cstring>

namespace dtrain::engine {
namespace {

constexpr uint64_t sums_count = 3;

} // namespace

uint8_t *ScheduleRun::place(const Place &place) const {
    switch (place.space) {
    // Builders never write to the input (the checker proves it).
    case Space::input:
        return const_cast<uint8_t *>(static_cast<const uint8_t *>(params_.input)) + place.offset;
    case Space::output: return static_cast<uint8_t *>(params_.output) + place.offset;
    case Space::scratch: return memory_->scratch.get() + place.offset;
    }
    return nullptr;
}

void ScheduleRun::work_locally(uint32_t i) {
    const Step &step = params_.plan->schedule.steps[i];
    uint64_t size = params_.dtype != 0 ? device::dtype_size(params_.dtype) : 1;
    switch (step.kind) {
    case StepKind::copy: device::copy(place(step.dst), place(step.src), step.bytes); break;
    case StepKind::reduce:
        device::reduce(place(step.dst), place(step.src), step.bytes / size, params_.dtype,
                       params_.op);
        break;
    case StepKind::scale:
        device::scale(place(step.dst), step.bytes / size, params_.dtype,
                      uint32_t(params_.members.size()));
        break;
    case StepKind::weigh: weigh(step, step.bytes / size); break;
    case StepKind::recv_reduce:
        device::reduce_pair(place(step.dst), place(step.src), memory_->steps[i].staging,
                            step.bytes / size, params_.dtype, params_.op);
        break;
    case StepKind::dots:
    case StepKind::add_sums:
    case StepKind::blend: work_on_sums(step, step.bytes / size); break;
    case StepKind::hash: {
        // Equal results have equal bits: kernels decide between zeros of both signs, and NaNs.
        const uint64_t hash = crc32c(place(step.src), step.bytes);
        std::memcpy(place(step.dst), &hash, sizeof hash);
        break;
    }
    case StepKind::compare: compare(step); break;
    default: break;
    }
}

void ScheduleRun::work_on_sums(const Step &step, uint64_t count) {
    void *own = place(step.dst), *other = place(step.src);
    if (step.kind == StepKind::add_sums)
        return device::reduce(own, other, sums_count, DTRAIN_F64, DTRAIN_SUM);
    const bool first = params_.rank < uint32_t(step.peer); // both sides use the same order of ranks
    const void *a = first ? own : other, *b = first ? other : own;
    auto *sums = reinterpret_cast<double *>(memory_->scratch.get() + step.sums);
    if (step.kind == StepKind::dots) return device::dots(a, b, count, params_.dtype, sums);
    // A vector of zeros is orthogonal to every vector.
    const double x = sums[0] == 0 ? 1 : 1 - sums[2] / (2 * sums[0]);
    const double y = sums[1] == 0 ? 1 : 1 - sums[2] / (2 * sums[1]);
    device::blend(own, a, x, b, y, count, params_.dtype);
}

void ScheduleRun::weigh(const Step &step, uint64_t count) {
    memory_->sources.clear();
    memory_->weights.clear();
    for (uint32_t t = step.first_term; t < step.first_term + step.terms_count; t++) {
        const Term &term = params_.plan->schedule.terms[t];
        memory_->sources.push_back(place(term.src));
        memory_->weights.push_back(term.weight);
    }
    device::weigh(place(step.dst), memory_->sources.data(), memory_->weights.data(),
                  step.terms_count, count, params_.dtype);
}

// Each of three ranks whose results should be equal sees which one differs; two do not.
void ScheduleRun::compare(const Step &step) {
    uint64_t own = 0, others[2] = {}; // of the ranks before and after this one
    std::memcpy(&own, place(step.src), sizeof own);
    std::memcpy(others, place(step.dst), step.bytes);
    const bool two = step.bytes == sizeof own;
    if (two) others[1] = others[0];
    if (others[0] == own && others[1] == own) return;
    const auto ranks = uint32_t(params_.members.size());
    const int32_t beside[2] = {step.peer, int32_t((params_.rank + 1) % ranks)};
    int32_t guilty = -1;
    if (!two && others[0] == others[1]) guilty = int32_t(params_.rank);
    if (!two && others[0] == own) guilty = beside[1];
    if (!two && others[1] == own) guilty = beside[0];
    char text[192];
    if (guilty >= 0)
        std::snprintf(text, sizeof text,
                      "its result differs from those of the ranks beside it: its memory or its "
                      "processor is at fault (option verify)");
    else
        std::snprintf(text, sizeof text,
                      "ranks %u and %d have different results: the memory or the processor of one "
                      "of them is at fault (option verify)",
                      params_.rank, beside[others[0] == own]);
    broken(DTRAIN_ERR_CORRUPT, guilty, text);
}

void ScheduleRun::trace_begin(StepRun &step) {
    if (agent_->timeline().on()) step.begun_ns = agent_->clock().now_ns();
}

void ScheduleRun::record(StepRun &step_run, StepKind kind) {
    static constexpr const char *names[] = {"send",   "recv",  "reduce", "copy",
                                            "reduce", "scale", "dots",   "add_sums",
                                            "blend",  "weigh", "hash",   "compare"};
    const Step &step = params_.plan->schedule.steps[index(step_run)];
    agent_->timeline().record({.begin_ns = step_run.begun_ns,
                               .end_ns = agent_->clock().now_ns(),
                               .name = names[size_t(kind)],
                               .bytes = step.bytes,
                               .call = sequence,
                               .group = params_.group,
                               .peer = step.peer,
                               .track = trace::Track::steps});
    step_run.begun_ns = 0;
}

void ScheduleRun::describe(trace::Record &record) const {
    record.name = params_.name;
    record.way = params_.plan->algorithm;
    record.bytes = params_.bytes;
    record.group = params_.group;
    record.dtype = uint8_t(params_.dtype);
}

} // namespace dtrain::engine

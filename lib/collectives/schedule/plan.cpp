// Writes one rank's schedule: chunks, message numbers and dependencies.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/plan.h"

#include "engine/tag.h"

namespace dtrain::collectives {

using engine::Space;
using engine::Step;
using engine::StepKind;

namespace {

constexpr uint64_t scratch_alignment = 64; // a cache line

constexpr uint64_t align_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

} // namespace

Plan::Plan(const CollectiveSpec &the_spec, engine::Schedule &out)
    : spec(the_spec), size(the_spec.size), rank(the_spec.rank), schedule_(out),
      chunk_(align_up(the_spec.chunk_bytes, the_spec.element_bytes)), sent_(size_t(the_spec.size)),
      received_(size_t(the_spec.size)) {
    if (spec.in_place) shared_ = in_place_base(spec);
    out = {};
}

void Plan::limit_messages(uint64_t transfers, uint64_t bytes) {
    if (transfers > engine::max_messages) {
        status_ = fail(DTRAIN_ERR_UNSUPPORTED,
                       "%s over %d ranks needs more than %u messages per pair with this algorithm",
                       kind_name(spec.kind), size, engine::max_messages);
        return;
    }
    uint64_t pieces = engine::max_messages / std::max<uint64_t>(transfers, 1);
    uint64_t least = align_up((bytes + pieces - 1) / pieces, spec.element_bytes);
    chunk_ = std::max(align_up(spec.chunk_bytes, spec.element_bytes), least);
}

Extent Plan::scratch(uint64_t bytes) {
    Extent extent{Space::scratch, schedule_.scratch_bytes, bytes};
    schedule_.scratch_bytes = align_up(schedule_.scratch_bytes + bytes, scratch_alignment);
    return extent;
}

void Plan::send(int32_t peer, Extent src) { emit(StepKind::send, peer, &src, nullptr); }
void Plan::recv(int32_t peer, Extent dst) { emit(StepKind::recv, peer, nullptr, &dst); }
void Plan::recv_reduce(int32_t peer, Extent own, Extent dst) {
    emit(StepKind::recv_reduce, peer, &own, &dst);
}
void Plan::reduce(Extent src, Extent dst) { emit(StepKind::reduce, -1, &src, &dst); }

void Plan::copy(Extent src, Extent dst) {
    Located from = locate({src.space, src.offset}), to = locate({dst.space, dst.offset});
    if (from.memory == to.memory && from.begin == to.begin) return;
    emit(StepKind::copy, -1, &src, &dst);
}

void Plan::finish(Extent sum) {
    if (spec.average && size > 1) emit(StepKind::scale, -1, nullptr, &sum);
}

void Plan::dots(int32_t peer, Extent other, Extent own, Extent sums) {
    on_sums(StepKind::dots, peer, other, own, sums.offset);
}
void Plan::add_sums(Extent src, Extent dst) { on_sums(StepKind::add_sums, -1, src, dst, 0); }
void Plan::blend(int32_t peer, Extent other, Extent own, Extent sums) {
    if (own.bytes > 0) on_sums(StepKind::blend, peer, other, own, sums.offset);
}

// Does not cut the step, because there is one set of sums for all of it.
void Plan::on_sums(StepKind kind, int32_t peer, Extent src, Extent dst, uint64_t sums) {
    Step step;
    step.kind = kind;
    step.peer = peer;
    step.src = {src.space, src.offset};
    step.dst = {dst.space, dst.offset};
    step.sums = sums;
    step.bytes = dst.bytes;
    add(step, true, true, kind != StepKind::dots);
}

Plan::Located Plan::locate(engine::Place place) {
    switch (place.space) {
    case Space::input:
        return spec.in_place ? Located{&user_, shared_.input + place.offset} : Located{nullptr, 0};
    case Space::output: return {&user_, shared_.output + place.offset};
    case Space::scratch: break;
    }
    return {&scratch_, place.offset};
}

void Plan::emit(StepKind kind, int32_t peer, const Extent *src, const Extent *dst) {
    bool reads_dst = kind == StepKind::reduce || kind == StepKind::scale;
    each_chunk(src ? src->bytes : dst->bytes, [&](uint64_t first, uint64_t bytes) {
        Step step;
        step.kind = kind;
        step.peer = peer;
        step.bytes = bytes;
        if (src) step.src = {src->space, src->offset + first};
        if (dst) step.dst = {dst->space, dst->offset + first};
        if (peer >= 0) {
            auto &count = (kind == StepKind::send ? sent_ : received_)[size_t(peer)];
            step.message = count++;
            schedule_.max_message = std::max(schedule_.max_message, count);
        }
        add(step, src != nullptr, reads_dst, dst != nullptr);
    });
}

void Plan::weigh(std::span<const Weighed> terms, Extent dst) {
    if (dst.bytes == 0) return;
    Step step;
    step.kind = StepKind::weigh;
    step.bytes = dst.bytes;
    step.dst = {dst.space, dst.offset};
    step.first_term = uint32_t(schedule_.terms.size());
    step.terms_count = uint32_t(terms.size());
    for (const Weighed &term : terms)
        schedule_.terms.push_back({{term.src.space, term.src.offset}, term.weight});
    add(step, false, false, true);
}

void Plan::read(engine::Place src, uint64_t bytes) {
    Located from = locate(src);
    auto index = uint32_t(schedule_.steps.size());
    if (from.memory) from.memory->read(from.begin, from.begin + bytes, index, schedule_.deps);
}

void Plan::add(Step step, bool reads_src, bool reads_dst, bool writes_dst) {
    auto index = uint32_t(schedule_.steps.size());
    auto &deps = schedule_.deps;
    step.first_dep = uint32_t(deps.size());
    if (reads_src) read(step.src, step.bytes);
    for (uint32_t t = 0; t < step.terms_count; t++)
        read(schedule_.terms[step.first_term + t].src, step.bytes);
    if (reads_dst) read(step.dst, step.bytes);
    if (writes_dst) {
        Located dst = locate(step.dst);
        dst.memory->write(dst.begin, dst.begin + step.bytes, index, deps);
    }
    if (step.kind == StepKind::dots) scratch_.write(step.sums, step.sums + sums_bytes, index, deps);
    if (step.kind == StepKind::blend) scratch_.read(step.sums, step.sums + sums_bytes, index, deps);
    std::sort(deps.begin() + step.first_dep, deps.end());
    deps.erase(std::unique(deps.begin() + step.first_dep, deps.end()), deps.end());
    step.deps_count = uint32_t(deps.size()) - step.first_dep;
    schedule_.steps.push_back(step);
}

} // namespace dtrain::collectives

// Part of the checker: conflicting steps must be ordered by dependencies.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/check/check_parts.h"

namespace dtrain::collectives {

using engine::Place;
using engine::Schedule;
using engine::Space;
using engine::Step;

namespace {

// Which steps of one rank must have ended before a step begins: one bit per pair of steps.
class Order {
  public:
    explicit Order(const Schedule &schedule)
        : words_((schedule.steps.size() + 63) / 64), bits_(schedule.steps.size() * words_) {
        for (size_t i = 0; i < schedule.steps.size(); i++) {
            const Step &step = schedule.steps[i];
            uint64_t *row = &bits_[i * words_];
            for (uint32_t d = 0; d < step.deps_count; d++) {
                uint32_t dep = schedule.deps[step.first_dep + d];
                row[dep / 64] |= uint64_t{1} << dep % 64;
                for (size_t w = 0; w <= dep / 64; w++) row[w] |= bits_[dep * words_ + w];
            }
        }
    }
    bool before(uint32_t first, uint32_t second) const {
        return bits_[second * words_ + first / 64] >> first % 64 & 1;
    }

  private:
    size_t words_;
    std::vector<uint64_t> bits_;
};

// Tracks the last writer of each element and its readers since, going through the steps in their
// order (which the dependencies respect). If each access is ordered after those, all conflicts are
// ordered.
class Accesses {
  public:
    Accesses(const CollectiveSpec &spec, const Schedule &schedule)
        : element_(spec.element_bytes), input_is_shared_(spec.in_place),
          memory_(spec, schedule.scratch_bytes), order_(schedule), cells_(memory_.cells().size()) {}

    // Both return a conflicting step that `step` is not ordered after, or no_step.
    uint32_t read(const Place &place, uint64_t bytes, uint32_t step) {
        if (place.space == Space::input && !input_is_shared_) return no_step; // no step writes it
        return each(place, bytes, [&](Cell &cell) {
            readers_.push_back({step, cell.last_reader});
            cell.last_reader = uint32_t(readers_.size());
            return unordered(cell.writer, step) ? cell.writer : no_step;
        });
    }
    uint32_t write(const Place &place, uint64_t bytes, uint32_t step) {
        return each(place, bytes, [&](Cell &cell) {
            uint32_t culprit = unordered(cell.writer, step) ? cell.writer : no_step;
            for (uint32_t at = cell.last_reader; at; at = readers_[at - 1].previous)
                if (unordered(readers_[at - 1].step, step)) culprit = readers_[at - 1].step;
            cell = {step, 0};
            return culprit;
        });
    }

  private:
    struct Cell {
        uint32_t writer = no_step;
        uint32_t last_reader = 0; // index in readers_ + 1; 0: none
    };
    struct Reader {
        uint32_t step, previous;
    };

    bool unordered(uint32_t first, uint32_t second) const {
        return first != no_step && first != second && !order_.before(first, second);
    }
    template <class F> uint32_t each(const Place &place, uint64_t bytes, F f) {
        uint64_t first = memory_.address(place.space, place.offset / element_);
        for (uint64_t i = 0; i < bytes / element_; i++)
            if (uint32_t culprit = f(cells_[first + i]); culprit != no_step) return culprit;
        return no_step;
    }

    uint64_t element_;
    bool input_is_shared_;
    SymbolMemory memory_;
    Order order_;
    std::vector<Cell> cells_;
    std::vector<Reader> readers_;
};

} // namespace

Status check_races(const CollectiveSpec &spec, const Schedule &schedule) {
    Accesses accesses(spec, schedule);
    for (uint32_t i = 0; i < schedule.steps.size(); i++) {
        const Step &step = schedule.steps[i];
        uint32_t culprit = no_step;
        each_read(schedule, step, [&](const Place &place) {
            if (culprit == no_step) culprit = accesses.read(place, step.bytes, i);
        });
        if (culprit == no_step && writes_dst(step.kind))
            culprit = accesses.write(step.dst, step.bytes, i);
        if (culprit != no_step)
            return fail(DTRAIN_ERR_INVALID, "%s: may run while step %u uses the same memory",
                        describe(spec.rank, i, step).c_str(), culprit);
    }
    return DTRAIN_OK;
}

} // namespace dtrain::collectives

// A server's part of one table: the values, the rule's state, and what waits to be applied.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/optimizer/function_call.h"
#include "ps/optimizer/learning_rate.h"
#include "ps/optimizer/segment_rules.h"
#include "ps/optimizer/step_counts.h"
#include "ps/optimizer/update_rule.h"
#include "ps/placement/partition.h"
#include "ps/storage/aggregate.h"
#include "ps/storage/answer_buffers.h"
#include "ps/storage/clock_sums.h"
#include "ps/storage/consistency.h"
#include "ps/storage/copies.h"
#include "ps/storage/dense_values.h"
#include "ps/storage/shard_image.h"
#include "ps/table/buffer.h"
#include "ps/table/protocol.h"
#include "ps/table/rules.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace dtrain::ps {

// Ranges are elements of the whole table; each lies in one of the ranges of part(). Each function
// that returns a Reason does all or nothing.
//
// What is pushed and set is of the type that the table's rule computes in (computed_dtype()).
class Shard {
  public:
    // What the shard will hold at most: values, state, sums, backups by worker.
    static uint64_t bytes_needed(const TableParams &params, uint64_t count, uint32_t workers);
    // nullptr: no memory. All but the values is allocated when first needed. function: of a table
    // that has one; outlives the shard.
    static std::unique_ptr<Shard> create(const TableParams &params, const Part &part,
                                         const dtrain_function_t *function = nullptr);

    const Part &part() const { return part_; }
    uint64_t size() const { return size_; } // bytes of one element of what is pushed
    uint64_t updates() const { return updates_; }

    void set(const Range &range, const void *values);
    // Applies a push at once. begins: it counts as one update (the first chunk of a push). With
    // norms the range is whole rows.
    Reason push(const Range &range, const void *g, bool begins, uint32_t worker = 0);
    // Adds a push to one of the sums, of which there are as many as are used.
    Reason collect(uint32_t sum, const Range &range, const void *g, double weight = 1);
    // As one update; empties the sums that it is made of. Reason::told: the function failed, and
    // the update is done in part.
    Reason apply(const ClockUpdate &update);
    void drop(uint32_t sum);                  // empties it
    void set_mode(const TableParams &params); // and gives up all sums
    // The learning rate from now on; from the updates of that clock on.
    void set_rate(double rate);
    void set_rate(double rate, uint64_t clock) { rates_[clock % open_clocks] = rate; }

    const void *at(uint64_t element) const;
    // Keeps the values in memory while an answer is sent from them.
    std::shared_ptr<const Buffer> values() const { return values_.memory; }
    // Whether values lie in memory as they travel. Else: as they travel, in memory of their own;
    // nullptr: there is none.
    bool lie_as_sent() const { return lie_as_sent_; }
    std::shared_ptr<const Buffer> as_sent(const Range &range);
    // What a function makes of the values, as it travels, in memory of its own; what a function
    // said last.
    bool transforms() const { return function_ != nullptr && function_->gets(); }
    Reason transform(const Range &range, std::shared_ptr<const Buffer> &out);
    bool copies_values() const { return transforms() || !lie_as_sent_; } // for each answer, ...
    uint64_t copy_bytes(uint64_t values) const { // ... of so many bytes of values: so many
        const bool exact = transforms() && params_.wire_dtype == 0;
        return exact ? values : answers_.bytes_for(values);
    }
    const FunctionCall::Failure &failure() const { return function_->failure(); }
    // The worker is about to be sent these values.
    Reason note_pull(uint32_t worker, const Range &range);

    // Memory that outlives the shard; nullptr: there is none.
    struct State {
        const void *numbers = nullptr;
        std::shared_ptr<const Buffer> hold;
    };
    // Of an array that find_state() knows; ranges are whole items of it.
    State state(uint64_t index, const Range &range);
    Reason set_state(uint64_t index, const Range &range, const void *numbers);

    // Everything but sums of open clocks, as it is now, once its copy is done; nullptr: no memory.
    // Until end() what changes is copied before.
    std::unique_ptr<ShardImage> image();
    void end(GradualCopy &copy) { copies_.end(copy); }
    // One that has ended, for the memory of the next; gives back the one that was kept.
    void keep(std::unique_ptr<ShardImage> &image) { kept_.swap(image); }
    uint64_t image_bytes() const; // of its values and state
    // Becomes what the image is, of this table and part; sums of open clocks stay.
    void adopt(ShardImage &&image);

  private:
    Shard(const TableParams &params, const Part &part, const dtrain_function_t *function);
    void fill(double value);
    bool allocate_slot(size_t i);
    bool fill_slots(); // that do not begin with 0
    Reason allocate_slots();
    void before_change(const Range &local) {
        if (copies_.any()) [[unlikely]]
            copy_first(local);
    }
    void copy_first(const Range &local);
    Reason back_up(uint32_t worker);
    void copy_to_backup(const Range &local, char *to) const;
    // The values of a range in the table's type, until the next call. Several ranges are opened
    // side by side, each after `before` elements of others, where there is room for all. close()
    // keeps what has become of them.
    char *open(const Range &local, uint64_t before = 0);
    void close(const Range &local, uint64_t before = 0);
    void make_room_to_open(uint64_t elements);
    std::shared_ptr<const Buffer> as_sent(const char *values, uint64_t count);
    // Where rules or rates depend on the number of the table's update: this one is at hand.
    void begin_update(uint64_t number);
    void use_rate(double rate);
    void update(const Range &local, const void *g, uint32_t worker);
    void update_part(const Range &local, uint64_t step, const void *g, uint32_t worker);
    void update_segments(uint64_t row, uint64_t step, const void *g);
    void add(Aggregate &sums, const Range &local, const void *g);
    // Into the first of them, which total becomes; nullptr: there was nothing in any.
    Reason add_up(const std::vector<uint32_t> &sums, Aggregate *&total);

    // How a function is run: on batches of pushes, each applied as a whole or not.
    struct Pushed {
        Range local;
        const char *g;
    };
    using Batch = std::span<const Pushed>;
    // f(key, place, elements) for each row, or where there are none for each range of the table.
    template <class F> void for_each_row(const Range &local, F &&f) const;
    dtrain_function_row_t &add_row(uint64_t key, uint64_t place, uint64_t dim, char *values);
    Reason run_update(Batch batch);
    bool combines_by_function() const { return function_ != nullptr && function_->combines(); }
    Reason combine_by_function(Aggregate &sums, Batch batch);
    // f(batch) for all of the sums, as much as a request may carry at a time. Empties them.
    template <class F> void take_batches(Aggregate &sums, F &&f) const;
    Reason add_by_function(Aggregate &total, Aggregate &sums);
    Reason apply_by_function(Aggregate &total, double divisor);
    Range local(const Range &range) const { return {part_.place_of(range.first), range.count}; }
    uint64_t slot_item() const; // elements that share a number of a slot

    TableParams params_;
    const RuleInfo &info_;
    UpdateRule rule_;
    Part part_;
    uint64_t size_;
    DenseValues values_;
    const bool lie_as_sent_;
    std::vector<StateArray> arrays_;               // slots_of()
    std::vector<std::shared_ptr<Buffer>> slots_;   // as many
    std::unique_ptr<FunctionCall> function_;       // of a table that has one
    std::unique_ptr<SegmentRules> segments_;       // likewise
    std::vector<std::unique_ptr<Buffer>> backups_; // by worker: what it pulled, as state
    const bool by_row_;                            // updates are of whole rows
    const uint64_t counted_; // elements that share a count of updates; 0: none is kept
    StepCounts steps_;       // of elements, or rows
    std::vector<Aggregate> sums_;
    ClockSums added_;                          // how they are made
    std::optional<double> rates_[open_clocks]; // of clock c: c % open_clocks, to be taken over
    uint64_t updates_ = 0;
    const bool numbered_; // has begin_update()
    uint64_t number_ = 1; // of the update at hand, if so
    LearningRate rate_;
    std::vector<float> wide_; // of open()
    AnswerBuffers answers_;
    std::unique_ptr<ShardImage> kept_;
    Copies<ArrayCopy> copies_; // arrays: values, the scales of int8, slots_
};

} // namespace dtrain::ps

// A server's part of one dense table: the values, the rule's state, and sums of open clocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/optimizer/step_counts.h"
#include "ps/placement/partition.h"
#include "ps/storage/aggregate.h"
#include "ps/storage/answer_buffers.h"
#include "ps/storage/clock_sums.h"
#include "ps/storage/copies.h"
#include "ps/storage/dense_values.h"
#include "ps/storage/shard_image.h"
#include "ps/storage/storage.h"
#include "ps/table/buffer.h"
#include "ps/table/protocol.h"
#include "ps/table/rules.h"
#include "ps/table/table_params.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dtrain::ps {

// Ranges are elements of the whole table; each must lie in one of the ranges of part().
class Shard final : public Storage {
  public:
    // The maximum bytes of the shard: values, state, sums, and backups by worker.
    static uint64_t bytes_needed(const TableParams &params, uint64_t count, uint32_t workers);
    // nullptr: no memory. Everything except the values is allocated when first needed. function:
    // for a table that has one; must outlive the shard.
    static std::unique_ptr<Shard> create(const TableParams &params, const Part &part,
                                         const dtrain_function_t *function = nullptr,
                                         uint32_t workers = 1);

    const Part &part() const { return part_; }
    uint64_t size() const { return size_; } // bytes of one pushed element

    void set(const Range &range, const void *values);
    // If the rule takes norms, the range must be whole rows.
    Reason push(const Range &range, const void *g, bool begins, uint32_t worker = 0);
    Reason collect(uint32_t sum, const Range &range, const void *g, double weight = 1);
    Reason apply(const ClockUpdate &update) override;
    void drop(uint32_t sum) override;
    void set_mode(const TableParams &params) override;

    const void *at(uint64_t element) const;
    // Keeps the values in memory while an answer is sent from them.
    std::shared_ptr<const Buffer> values() const { return values_.memory; }
    // Whether values are stored in their format on the wire. If not, as_sent() converts them into a
    // copy; nullptr: no memory.
    bool lie_as_sent() const { return lie_as_sent_; }
    std::shared_ptr<const Buffer> as_sent(const Range &range);
    // Lets the function transform values, and returns a copy in the format on the wire.
    Reason transform(const Range &range, std::shared_ptr<const Buffer> &out);
    bool copies_values() const override { return transforms() || !lie_as_sent_; }
    bool copies_state(uint64_t index) const override;
    uint64_t copy_bytes(uint64_t values) const override {
        const bool exact = transforms() && params_.wire_dtype == 0;
        return exact ? values : answers_.bytes_for(values);
    }
    // Call it before these values are sent to the worker.
    Reason note_pull(uint32_t worker, const Range &range);

    // index: an array of find_state(); range: whole items of it. Numbers of nullptr: no memory.
    Pulled state(uint64_t index, const Range &range);
    Reason set_state(uint64_t index, const Range &range, const void *numbers);

    std::unique_ptr<ShardImage> image(); // like begin_image()
    void end(GradualCopy &copy) override { copies_.end(copy); }
    void keep(std::unique_ptr<ShardImage> &image) { kept_.swap(image); }
    uint64_t image_bytes() const override;
    void adopt(ShardImage &&image); // sums of open clocks stay

    Reason set(const Items &items, const void *values) override {
        set(items.range(), values);
        return Reason::none;
    }
    Reason push(const Items &items, const void *g, bool begins, uint32_t worker) override {
        return push(items.range(), g, begins, worker);
    }
    Reason collect(uint32_t sum, const Items &items, const void *g, double weight,
                   uint32_t /*worker*/) override {
        return collect(sum, items.range(), g, weight);
    }
    Reason pull(const Items &items, uint32_t worker, const Into &out) override;
    Reason pull_state(uint64_t index, const Items &items, const Into &out) override;
    Reason set_state(uint64_t index, const Items &items, const void *numbers) override {
        return set_state(index, items.range(), numbers);
    }
    uint64_t bytes() const override { return bytes_; }
    uint64_t bytes_in_mode(const TableParams &params) const override {
        return bytes_needed(params, part_.count(), workers_);
    }
    std::array<uint64_t, 2> limits() const override { return {bytes_, 0}; }
    uint64_t lacking(uint64_t /*bytes*/) const override { return bytes_; }
    std::unique_ptr<Image> begin_image() override { return image(); }
    std::unique_ptr<Image> blank_image() const override {
        return std::make_unique<ShardImage>(params_, part_);
    }
    void keep(std::unique_ptr<Image> &image) override { exchange(image, kept_); }
    void adopt(Image &&image) override { adopt(static_cast<ShardImage &&>(image)); }

  private:
    Shard(const TableParams &params, const Part &part, const dtrain_function_t *function,
          uint32_t workers);
    void fill(double value);
    bool allocate_slot(size_t i);
    bool fill_slots(); // those whose initial value is not 0
    Reason allocate_slots();
    void before_change(const Range &local) {
        if (copies_.any()) [[unlikely]]
            copy_first(local);
    }
    void copy_first(const Range &local);
    Reason back_up(uint32_t worker);
    void copy_to_backup(const Range &local, char *to) const;
    // The values of a range in computed_dtype(), valid until the next call. Several ranges can be
    // open at once, each after `before` elements of others, if make_room_to_open() was called for
    // all. close() stores the changed values.
    char *open(const Range &local, uint64_t before = 0);
    void close(const Range &local, uint64_t before = 0);
    void make_room_to_open(uint64_t elements);
    std::shared_ptr<const Buffer> as_sent(const char *values, uint64_t count);
    void update(const Range &local, const void *g, uint32_t worker);
    void update_part(const Range &local, uint64_t step, const void *g, uint32_t worker);
    void update_segments(uint64_t row, uint64_t step, const void *g);
    void add(Aggregate &sums, const Range &local, const void *g);
    // Adds all sums to the first one, which total points to then; nullptr: no sum exists.
    Reason add_up(const std::vector<uint32_t> &sums, Aggregate *&total);

    // A function runs on batches of pushes; each batch is applied completely or not at all.
    struct Pushed {
        Range local;
        const char *g;
    };
    using Batch = std::span<const Pushed>;
    // Calls f(key, place, elements) for each row, or for each range if the table has no rows.
    template <class F> void for_each_row(const Range &local, F &&f) const;
    dtrain_function_row_t &add_row(uint64_t key, uint64_t place, uint64_t dim, char *values);
    Reason run_update(Batch batch);
    Reason combine_by_function(Aggregate &sums, Batch batch);
    // Calls f(batch) for all of the sums, with at most the values of one request at a time. Empties
    // the sums.
    template <class F> void take_batches(Aggregate &sums, F &&f) const;
    Reason add_by_function(Aggregate &total, Aggregate &sums);
    Reason apply_by_function(Aggregate &total, double divisor);
    Range local(const Range &range) const { return {part_.place_of(range.first), range.count}; }
    uint64_t slot_item() const; // the elements that share a number of a slot

    const RuleInfo &info_;
    Part part_;
    const uint32_t workers_;
    uint64_t bytes_; // bytes_needed() in the current mode
    uint64_t size_;
    DenseValues values_;
    const bool lie_as_sent_;
    std::vector<StateArray> arrays_;               // slots_of()
    std::vector<std::shared_ptr<Buffer>> slots_;   // by index in arrays_
    std::vector<std::unique_ptr<Buffer>> backups_; // by worker: values it pulled, in slot_dtype()
    const bool by_row_;                            // updates are of whole rows
    const uint64_t counted_; // elements that share a count of updates; 0: no counts
    StepCounts steps_;       // counts of elements or rows
    std::vector<Aggregate> sums_;
    ClockSums added_;         // the format of the sums
    std::vector<float> wide_; // scratch of open()
    AnswerBuffers answers_;
    std::unique_ptr<ShardImage> kept_;
    Copies<ArrayCopy> copies_; // with the arrays: values, scales of int8, slots_
};

} // namespace dtrain::ps

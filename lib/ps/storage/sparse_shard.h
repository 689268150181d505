// A server's part of one sparse table: rows of values with the rule's state, and sums of open
// clocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/answer_buffers.h"
#include "ps/storage/clock_sums.h"
#include "ps/storage/copies.h"
#include "ps/storage/kept_rows.h"
#include "ps/storage/row_copy.h"
#include "ps/storage/row_initializer.h"
#include "ps/storage/row_pushers.h"
#include "ps/storage/row_store.h"
#include "ps/storage/storage.h"
#include "ps/table/protocol.h"
#include "ps/table/rules.h"
#include "ps/table/table_params.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dtrain::ps {

// The bytes of a row: the values as a row (narrow.h) of the storage_dtype, then each slot of the
// rule's state, then the count of its updates.
struct RowLayout {
    explicit RowLayout(const TableParams &params);
    struct Slot {
        uint64_t at, bytes;
    };
    uint64_t values, steps_at, bytes;
    std::vector<Slot> slots; // by index in slots_of()
};

struct RowImage;

// The rows and sums for which a push has kept room.
struct KeptRoom {
    std::optional<uint32_t> sum; // the number of the sum that collects the push, if any
    std::vector<uint64_t> rows = {}, sums = {};
};

// Keys may repeat; each occurrence is a separate update.
class SparseShard final : public Storage {
  public:
    // function: for a table that has one; must outlive the shard.
    explicit SparseShard(const TableParams &params, const dtrain_function_t *function = nullptr,
                         uint32_t workers = 1);
    ~SparseShard() override;

    uint64_t size() const { return rows_.size(); } // existing rows
    uint64_t memory() const;                       // bytes of rows, sums, and their indices
    // Limits memory() plus kept_bytes() when rows are made, in addition to the table's max_bytes.
    void set_limit(uint64_t bytes) { limit_ = std::min(bytes, own_limit_); }
    uint64_t limit() const { return limit_; }

    // A push of several requests keeps room for all of its rows before its first request is
    // applied, so that no request is refused for lack of room. Call begin_keeping() with an empty
    // room, then keep() as often as needed, each time with other keys; then apply the requests;
    // then call end_keeping().
    void begin_keeping(KeptRoom &room);
    Reason keep(KeptRoom &room, const uint64_t *keys, size_t count);
    void end_keeping(const KeptRoom &room);
    uint64_t kept_bytes() const; // bytes of kept room, not included in memory()

    const RowStore &rows() const { return rows_; }
    Reason push(const uint64_t *keys, size_t count, const void *g, bool begins);
    Reason collect(uint32_t sum, const uint64_t *keys, size_t count, const void *g,
                   double weight = 1, uint32_t worker = 0);
    Reason apply(const ClockUpdate &update) override;
    void drop(uint32_t sum) override;
    void set_mode(const TableParams &params) override;
    // Copies the values of the keys' rows, or initial ones, in their format on the wire; bytes
    // beyond them are undefined. Valid as long as the pointer is held. nullptr: no memory.
    std::shared_ptr<const Buffer> gather(const uint64_t *keys, size_t count);
    uint64_t copy_bytes(uint64_t values) const override { return answers_.bytes_for(values); }
    // Lets the function transform values, and returns a copy in the format on the wire.
    Reason transform(const uint64_t *keys, size_t count, std::shared_ptr<const Buffer> &out);
    Reason set(const uint64_t *keys, size_t count, const void *values);
    // Removes rows immediately, with their state and their pushes in open clocks.
    void erase(const uint64_t *keys, size_t count);
    // Like gather() and set(), for one of the arrays of find_state(). Missing rows have initial
    // state. Counts of steps are stored in 32 bits; larger ones are clamped.
    std::shared_ptr<const Buffer> gather_state(uint64_t index, const uint64_t *keys, size_t count);
    Reason set_state(uint64_t index, const uint64_t *keys, size_t count, const void *numbers);

    std::unique_ptr<RowImage> image(); // like begin_image()
    void end(GradualCopy &copy) override { copies_.end(copy); }
    void keep(std::unique_ptr<RowImage> &image) { kept_.swap(image); }
    uint64_t image_bytes() const override { return size() * (sizeof(uint64_t) + layout_.bytes); }
    void adopt(RowImage &&image); // sums of open clocks are emptied

    Reason set(const Items &items, const void *values) override {
        return set(items.keys(), items.count(), values);
    }
    Reason push(const Items &items, const void *g, bool begins, uint32_t /*worker*/) override {
        return push(items.keys(), items.count(), g, begins);
    }
    Reason collect(uint32_t sum, const Items &items, const void *g, double weight,
                   uint32_t worker) override {
        return collect(sum, items.keys(), items.count(), g, weight, worker);
    }
    Reason pull(const Items &items, uint32_t worker, const Into &out) override;
    Reason pull_state(uint64_t index, const Items &items, const Into &out) override;
    Reason set_state(uint64_t index, const Items &items, const void *numbers) override {
        return set_state(index, items.keys(), items.count(), numbers);
    }
    bool copies_values() const override { return true; }
    bool copies_state(uint64_t /*index*/) const override { return true; }
    uint64_t bytes() const override { return memory() + kept_bytes(); }
    uint64_t bytes_in_mode(const TableParams & /*params*/) const override { return 0; }
    void set_room(uint64_t room) override { set_limit(bytes() + room); }
    std::array<uint64_t, 2> limits() const override;
    uint64_t lacking(uint64_t bytes) const override { return bytes; }
    std::unique_ptr<Image> begin_image() override;
    std::unique_ptr<Image> blank_image() const override;
    void keep(std::unique_ptr<Image> &image) override;
    void adopt(Image &&image) override;
    SparseShard *sparse() override { return this; }

  private:
    // Finds or makes the rows of the keys, as claimed_. sum: the sum that will collect them, or
    // nullptr.
    Reason claim(const uint64_t *keys, size_t count, const uint32_t *sum = nullptr);
    void undo_claim(); // erases the rows that claim() has made
    // Whether rows and sums for the keys fit in the limit, in addition to all kept rows.
    bool has_room(const uint64_t *keys, size_t count, const uint32_t *sum);
    // The growth of the store by all kept rows and by the keys that it neither has nor keeps.
    const RowStore::Growth &growth_with(const RowStore &store, const KeptRows &kept,
                                        const uint64_t *keys, size_t count);
    void recount_sums();
    void make_sum(uint32_t sum);
    void make_row(uint64_t key, char *row);
    const char *initial_values(uint64_t key); // in the stored format, valid until the next call
    // The row's values in computed_dtype(): the row's own memory, or a widened copy in place i of
    // the scratch, valid until the next call for i. close() stores the changed values.
    char *open(const char *row, size_t i = 0);
    void close(uint64_t key, char *row, size_t i = 0);
    void make_room_to_open(size_t count);
    void update(uint64_t key, char *row, const void *g);
    // Adds a row to the function's next call. values: the result of open().
    dtrain_function_row_t &add_row(uint64_t key, char *row, char *values);
    Reason run_update(const uint64_t *keys, char *const *rows, const char *const *g, size_t count);
    // Adds the keys' rows of the other sums to `sums`, and removes them there.
    Reason add_others(const uint64_t *keys, char *const *sums, size_t count,
                      std::span<const uint32_t> others);
    void before_change(const uint64_t *keys, size_t count) const {
        if (copies_.any()) [[unlikely]]
            copies_.for_each([&](RowCopy &copy) { copy.before_change(keys, count); });
    }
    Reason no_room() const;

    RowInitializer initial_;
    const RowLayout layout_;
    const bool narrow_, lie_as_sent_; // stored in another type; stored in the format on the wire
    const uint64_t row_bytes_, sent_; // bytes of a row in computed_dtype(); on the wire
    const uint64_t own_limit_;        // the table's max_bytes; UINT64_MAX: no limit
    uint64_t limit_;
    RowStore rows_;
    const bool counts_; // rows have a count of updates
    std::vector<RowStore> sums_;
    KeptRows kept_rows_;
    std::vector<KeptRows> kept_sums_;                      // by index in sums_
    std::vector<uint64_t> made_, missing_;                 // scratch
    RowStore::Growth growth_;                              // scratch
    ClockSums added_;                                      // the format of the sums
    const uint64_t sum_bytes_;                             // bytes of a row's sum, followed by ...
    const RowPushers pushers_;                             // ... its pushers
    std::vector<char *> claimed_;                          // scratch: rows of claim()
    std::vector<const char *> pushed_;                     // scratch: rows for a function
    std::vector<float> wide_, drawn_;                      // scratch: of open(); initial values
    std::vector<char> initial_row_;                        // values: scratch; state: initial state
    std::vector<std::pair<uint64_t, const char *>> fresh_; // scratch: new sums
    AnswerBuffers answers_;
    std::unique_ptr<RowImage> kept_;
    Copies<RowCopy> copies_;
};

} // namespace dtrain::ps

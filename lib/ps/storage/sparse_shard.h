// A server's part of one sparse table: rows of values with the rule's state, and sums of open
// clocks. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/optimizer/function_call.h"
#include "ps/optimizer/learning_rate.h"
#include "ps/optimizer/segment_rules.h"
#include "ps/optimizer/update_rule.h"
#include "ps/storage/answer_buffers.h"
#include "ps/storage/clock_sums.h"
#include "ps/storage/consistency.h"
#include "ps/storage/copies.h"
#include "ps/storage/kept_rows.h"
#include "ps/storage/row_copy.h"
#include "ps/storage/row_initializer.h"
#include "ps/storage/row_pushers.h"
#include "ps/storage/row_store.h"
#include "ps/table/protocol.h"
#include "ps/table/rules.h"
#include "ps/table/table_params.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dtrain::ps {

// Bytes of a row: values, as a row (narrow.h) of the storage_dtype, then each slot of the rule's
// state, then how many updates it has had.
struct RowLayout {
    explicit RowLayout(const TableParams &params);
    struct Slot {
        uint64_t at, bytes;
    };
    uint64_t values, steps_at, bytes;
    std::vector<Slot> slots; // as slots_of()
};

struct RowImage;

// What a push has kept room for.
struct KeptRoom {
    std::optional<uint32_t> sum; // that it is collected in
    std::vector<uint64_t> rows = {}, sums = {};
};

// Keys may repeat, each time as an update of its own. Functions that return a Reason do all or
// nothing, except that a function which fails leaves rows with their initial values. What is pushed
// and set is of the type that the table's rule computes in (computed_dtype()).
class SparseShard {
  public:
    // function: of a table that has one; outlives the shard.
    explicit SparseShard(const TableParams &params, const dtrain_function_t *function = nullptr,
                         uint32_t workers = 1);
    ~SparseShard();

    uint64_t updates() const { return updates_; }
    uint64_t size() const { return rows_.size(); } // rows that were made
    uint64_t memory() const;                       // bytes of rows, sums, and their indices
    // Of memory() when rows are made, on top of the table's own.
    // It is for what is kept, too.
    void set_limit(uint64_t bytes) { limit_ = std::min(bytes, own_limit_); }
    uint64_t limit() const { return limit_; }

    // A push of several requests keeps room for all of its rows before the first of them is
    // applied, so that none is refused for want of it. begin_keeping() with an empty room, then as
    // many keep() as it takes, each of other keys; then its requests; then end_keeping().
    void begin_keeping(KeptRoom &room);
    Reason keep(KeptRoom &room, const uint64_t *keys, size_t count);
    void end_keeping(const KeptRoom &room);
    uint64_t kept_bytes() const; // on top of memory()

    // Applies rows at once. begins: they count as one update (the first request of a push).
    Reason push(const uint64_t *keys, size_t count, const void *g, bool begins);
    // Adds rows of a worker to one of the sums, of which there are as many as are used.
    Reason collect(uint32_t sum, const uint64_t *keys, size_t count, const void *g,
                   double weight = 1, uint32_t worker = 0);
    // As one update; empties the sums that it is made of. Reason::told: the function failed, and
    // the update is done in part.
    Reason apply(const ClockUpdate &update);
    void drop(uint32_t sum);                  // empties it
    void set_mode(const TableParams &params); // and gives up all sums
    // The learning rate from now on; from the updates of that clock on.
    void set_rate(double rate);
    void set_rate(double rate, uint64_t clock) { rates_[clock % open_clocks] = rate; }
    // The values of the keys' rows, or initial ones, as they travel; the bytes beyond them mean
    // nothing. Kept as long as somebody holds them. nullptr: no memory.
    std::shared_ptr<const Buffer> gather(const uint64_t *keys, size_t count);
    // What that takes, for so many bytes of values.
    uint64_t copy_bytes(uint64_t values) const { return answers_.bytes_for(values); }
    // What a function makes of the values, as it travels; what a function said last.
    bool transforms() const { return function_ != nullptr && function_->gets(); }
    Reason transform(const uint64_t *keys, size_t count, std::shared_ptr<const Buffer> &out);
    const FunctionCall::Failure &failure() const { return function_->failure(); }
    // Overwrites values, whatever the rule; state stays. Makes the rows that are not there.
    Reason set(const uint64_t *keys, size_t count, const void *values);
    // At once, with their state and what was pushed for them in open clocks.
    void erase(const uint64_t *keys, size_t count);
    // One of the arrays of find_state(), as gather() and set() for values; rows that are not there
    // have what they would begin with. Counts of steps are kept in 32 bits; larger ones become the
    // largest.
    std::shared_ptr<const Buffer> gather_state(uint64_t index, const uint64_t *keys, size_t count);
    Reason set_state(uint64_t index, const uint64_t *keys, size_t count, const void *numbers);

    // All rows, and no sums of open clocks, as they are now, once its copy is done; nullptr: no
    // memory. Until end() what changes is copied before.
    std::unique_ptr<RowImage> image();
    void end(GradualCopy &copy) { copies_.end(copy); }
    // One that has ended, for the memory of the next; gives back the one that was kept.
    void keep(std::unique_ptr<RowImage> &image) { kept_.swap(image); }
    uint64_t image_bytes() const { return size() * (sizeof(uint64_t) + layout_.bytes); }
    // Takes the rows of an image of this table; sums of open clocks lose theirs.
    void adopt(RowImage &&image);

  private:
    // sums: where they are claimed next, or nullptr.
    Reason claim(const uint64_t *keys, size_t count, const uint32_t *sum = nullptr);
    void undo_claim(); // of the rows that it has made
    // Whether their rows, and sums, fit beside what is kept.
    bool has_room(const uint64_t *keys, size_t count, const uint32_t *sum);
    // What is kept and not among the keys that the store has, or keeps, already.
    const RowStore::Growth &growth_with(const RowStore &store, const KeptRows &kept,
                                        const uint64_t *keys, size_t count);
    void recount_sums();
    void make_sum(uint32_t sum);
    void make_row(uint64_t key, char *row);
    const char *initial_values(uint64_t key); // as stored, until the next call
    // Values in the table's type: the row's own memory, or row i of those that are widened until
    // the next call for it. close() keeps what has become of them.
    char *open(const char *row, size_t i = 0);
    void close(uint64_t key, char *row, size_t i = 0);
    void make_room_to_open(size_t count);
    void begin_update(uint64_t number); // as Shard's
    void use_rate(double rate);
    void update(uint64_t key, char *row, const void *g);
    // Row i of the function's next call; values: its own, or what open() gives.
    dtrain_function_row_t &add_row(uint64_t key, char *row, char *values);
    Reason run_update(const uint64_t *keys, char *const *rows, const char *const *g, size_t count);
    // Takes the keys' rows out of the other sums.
    Reason add_others(const uint64_t *keys, char *const *sums, size_t count,
                      std::span<const uint32_t> others);
    bool combines_by_function() const { return function_ != nullptr && function_->combines(); }
    void before_change(const uint64_t *keys, size_t count) const {
        if (copies_.any()) [[unlikely]]
            copies_.for_each([&](RowCopy &copy) { copy.before_change(keys, count); });
    }
    Reason no_room() const;

    TableParams params_;
    UpdateRule rule_;
    std::optional<double> rates_[open_clocks]; // of clock c: c % open_clocks, to be taken over
    RowInitializer initial_;
    const RowLayout layout_;
    const bool narrow_, lie_as_sent_; // values are not of the table's type; they are as they travel
    const uint64_t row_bytes_, sent_; // of a row of the table's type; as it travels
    const uint64_t own_limit_;        // of the table; UINT64_MAX: none
    uint64_t limit_, updates_ = 0;
    RowStore rows_;
    std::unique_ptr<FunctionCall> function_; // of a table that has one
    std::unique_ptr<SegmentRules> segments_; // likewise
    const bool counts_;
    const bool numbered_; // has begin_update()
    uint64_t number_ = 1; // of the update at hand, if so
    LearningRate rate_;
    std::vector<RowStore> sums_;
    KeptRows kept_rows_;
    std::vector<KeptRows> kept_sums_;                      // as sums_
    std::vector<uint64_t> made_, missing_;                 // scratch
    RowStore::Growth growth_;                              // likewise
    ClockSums added_;                                      // how sums are made
    const uint64_t sum_bytes_;                             // of a row's, behind which are
    const RowPushers pushers_;                             // its pushers
    std::vector<char *> claimed_;                          // scratch
    std::vector<const char *> pushed_;                     // scratch: of a function
    std::vector<float> wide_, drawn_;                      // scratch: of open(); initial values
    std::vector<char> initial_row_;                        // values: scratch; state
    std::vector<std::pair<uint64_t, const char *>> fresh_; // scratch: sums just begun
    AnswerBuffers answers_;
    std::unique_ptr<RowImage> kept_;
    Copies<RowCopy> copies_;
};

} // namespace dtrain::ps

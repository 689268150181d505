// A server's part of one table: what a dense shard and a sparse one have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/optimizer/function_call.h"
#include "ps/optimizer/learning_rate.h"
#include "ps/optimizer/segment_rules.h"
#include "ps/optimizer/step_counts.h"
#include "ps/optimizer/update_rule.h"
#include "ps/storage/consistency.h"
#include "ps/storage/delivery.h"
#include "ps/storage/gradual_copy.h"
#include "ps/storage/image.h"
#include "ps/storage/items.h"
#include "ps/table/buffer.h"
#include "ps/table/protocol.h"
#include "ps/table/table_params.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace dtrain::ps {

class SparseShard;

// Items must be elements of the part, or keys, depending on the kind of the table. Functions that
// return a Reason do all or nothing, except that rows of a sparse table that were made before a
// user function failed stay with their initial values. Pushed values and values to set are of
// computed_dtype().
class Storage {
  public:
    // The bytes that a table takes from its creation on; a sparse one takes memory for rows later.
    static uint64_t bytes_needed(const TableParams &params, const Part &part, uint32_t workers);
    // A dense or a sparse one, by the parameters; nullptr: no memory. function: for a table that
    // has one; must outlive the storage.
    static std::unique_ptr<Storage> create(const TableParams &params, const Part &part,
                                           const dtrain_function_t *function, uint32_t workers);
    virtual ~Storage() = default;
    Storage(const Storage &) = delete;
    Storage &operator=(const Storage &) = delete;

    uint64_t updates() const { return updates_; }
    // The next update is number count + 1.
    void set_updates(uint64_t count);

    // Applies a push immediately. begins: it counts as one update (the first request of a push).
    virtual Reason push(const Items &items, const void *g, bool begins, uint32_t worker) = 0;
    // Adds a push to the sum with this number; sums are created on demand.
    virtual Reason collect(uint32_t sum, const Items &items, const void *g, double weight,
                           uint32_t worker) = 0;
    // Applies the sums of a clock as one update and empties them. Reason::told: the function
    // failed, and the update was only partly applied.
    virtual Reason apply(const ClockUpdate &update) = 0;
    virtual void drop(uint32_t sum) = 0; // empties a sum
    // Overwrites values regardless of the rule, and keeps state. Makes missing rows.
    virtual Reason set(const Items &items, const void *values) = 0;
    virtual void set_mode(const TableParams &params) = 0; // also discards all sums
    // Sets the learning rate from now on, or from the update of that clock on.
    void set_rate(double rate);
    void set_rate(double rate, uint64_t clock) { rates_[clock % open_clocks] = rate; }

    // Values or state in their format on the wire, in memory that may outlive the storage.
    struct Pulled {
        const void *numbers = nullptr;
        std::shared_ptr<const Buffer> hold;
    };
    // Members of the caller that receive what was pulled; undefined after a failure.
    struct Into {
        const void *&numbers;
        std::shared_ptr<const Buffer> &hold;
        // Set if the numbers are still on their way: what they get to by, of storages that copy
        // from an accelerator, for which it must be given.
        std::shared_ptr<Delivery> *delivery = nullptr;
    };
    virtual Reason pull(const Items &items, uint32_t worker, const Into &out) = 0;
    // index: an array of find_state().
    virtual Reason pull_state(uint64_t index, const Items &items, const Into &out) = 0;
    virtual Reason set_state(uint64_t index, const Items &items, const void *numbers) = 0;
    // Whether pull() and pull_state() copy, and the bytes of the copy for this many bytes.
    virtual bool copies_values() const = 0;
    virtual bool copies_state(uint64_t index) const = 0;
    virtual uint64_t copy_bytes(uint64_t bytes) const = 0;
    // Whether a function transforms pulled values.
    bool transforms() const { return function_ != nullptr && function_->gets(); }
    // The last error of the function.
    const FunctionCall::Failure &failure() const { return function_->failure(); }

    // Why requests about the values get Reason::device; nullptr: they do not.
    virtual const std::string *broken() const { return nullptr; }
    // What a call is about to do: change values by one request, apply the sums of a clock, or
    // something that waits until it is done.
    enum class Need : uint8_t { change, clock, whole };
    // Whether the call would wait for an accelerator. If not, it is made now, or only_asks: soon.
    // Else this is to be asked again later; threads that sleep are woken.
    virtual bool is_busy(Need /*need*/, bool /*only_asks*/ = false) { return false; }

    virtual uint64_t bytes() const = 0;                 // charged to the server's limit
    virtual uint64_t device_bytes() const { return 0; } // in memory of an accelerator
    // Those that it has at once in another mode; rows are charged when they are made.
    virtual uint64_t bytes_in_mode(const TableParams &params) const = 0;
    bool grows() const { return is_sparse(params_); } // any request may need more memory
    virtual void set_room(uint64_t /*bytes*/) {}      // how much more it may take
    // The numbers for the text of a limit, or of a lack of memory.
    virtual std::array<uint64_t, 2> limits() const = 0;
    // The bytes that were lacking, if an answer of this many bytes could not be copied.
    virtual uint64_t lacking(uint64_t bytes) const = 0;

    // An image of everything except sums of open clocks, as it is now; complete when its copy is
    // done. Until end(), data that changes is copied first. nullptr: no memory.
    virtual std::unique_ptr<Image> begin_image() = 0;
    virtual void end(GradualCopy &copy) = 0;
    virtual uint64_t image_bytes() const = 0; // bytes of values and state, with keys
    // Keeps a finished image so that the next one reuses its memory; returns the one kept before.
    virtual void keep(std::unique_ptr<Image> &image) = 0;
    virtual std::unique_ptr<Image> blank_image() const = 0; // to be read from a checkpoint
    // Takes over the contents of an image of this table and part.
    virtual void adopt(Image &&image) = 0;

    // For requests that only a sparse table has; nullptr: it is dense.
    virtual SparseShard *sparse() { return nullptr; }

  protected:
    Storage(const TableParams &params, const dtrain_function_t *function);
    // Sets the number of the current update, if rules or rates depend on it.
    void begin_update(uint64_t number);
    // Counts the update of a clock, and sets the rate that was given for it.
    void begin_clock(uint64_t clock);
    bool combines_by_function() const { return function_ != nullptr && function_->combines(); }
    // Sets the counts of these items to numbers of a peer's.
    static Reason write_steps(StepCounts &steps, const Range &items, const void *numbers);
    // Exchanges an image for the one that was kept before.
    template <class Own>
    static void exchange(std::unique_ptr<Image> &image, std::unique_ptr<Own> &kept) {
        std::unique_ptr<Own> given(static_cast<Own *>(image.release()));
        image = std::move(kept);
        kept = std::move(given);
    }

    TableParams params_;
    UpdateRule rule_;
    std::unique_ptr<FunctionCall> function_; // if the table has a function
    std::unique_ptr<SegmentRules> segments_; // if the table has segments
    LearningRate rate_;
    uint64_t updates_ = 0;
    const bool numbered_; // begin_update() must be called
    uint64_t number_ = 1; // number of the current update, if numbered_

  private:
    void use_rate(double rate);

    std::optional<double> rates_[open_clocks]; // by clock % open_clocks: the rate to set then
};

} // namespace dtrain::ps

// A snapshot of memory at one moment, copied in pieces while the memory keeps changing.
// SPDX-License-Identifier: Apache-2.0
//
// Copy on write: before memory is changed, before_change() copies the part that was not copied yet.
// So a long copy needs the lock of the memory only for a piece at a time.
#pragma once
#include "ps/table/buffer.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

// An array of bits, one per item.
class Marks {
  public:
    bool allocate(uint64_t count); // all bits are clear; false: no memory
    bool marked(uint64_t i) const { return (word(i) >> i % 64 & 1) != 0; }
    void mark(uint64_t i) { word(i) |= uint64_t{1} << i % 64; }
    // The first item in [at, end) that is marked, or that is not marked; end: there is none.
    uint64_t find(uint64_t at, uint64_t end, bool marked) const;
    uint32_t count(uint64_t at, uint64_t end) const; // marked items; at: a multiple of 64

  private:
    uint64_t &word(uint64_t i) const {
        return *reinterpret_cast<uint64_t *>(words_.at(i / 64 * sizeof(uint64_t)));
    }
    Buffer words_;
};

// All calls except targets() need the lock of the copied memory.
class GradualCopy {
  public:
    enum class State : uint8_t { going, done, canceled };
    // Memory that the copy is written to.
    struct Target {
        std::shared_ptr<Buffer> memory;
        uint64_t bytes;
    };
    virtual ~GradualCopy() = default;

    const std::vector<Target> &targets() const { return targets_; }
    State state() const { return state_; }
    const std::string &why() const { return why_; } // it was canceled; "": as its source is gone
    // Copies about this many bytes more, or nothing if a part of it would wait long.
    static constexpr uint64_t rest = UINT64_MAX; // all that is left, however long it waits
    State advance(uint64_t bytes);
    void cancel(std::string why = ""); // stops, and releases the source

  protected:
    explicit GradualCopy(std::vector<Target> targets) : targets_(std::move(targets)) {}
    bool going() const { return state_ == State::going; }
    virtual bool copy_more(uint64_t bytes) = 0; // false: all has been copied
    virtual void let_go() = 0;                  // releases the source

  private:
    std::vector<Target> targets_;
    State state_ = State::going;
    std::string why_;
};

// A copy of arrays, page by page.
class ArrayCopy final : public GradualCopy {
  public:
    struct Array {
        std::shared_ptr<const Buffer> from; // nullptr: zeros
        std::shared_ptr<Buffer> to;
        uint64_t bytes;
    };
    // Of arrays that are not in memory of the host, instead of their `from`.
    struct Remote {
        enum class Result : uint8_t { done, later, failed };
        // Copies bytes of an array. later: it would wait long, and need not be now; failed:
        // error_text() says why.
        std::function<Result(size_t array, uint64_t at, uint64_t bytes, void *to, bool now)> read;
        std::function<bool()> is_busy; // a part of a copy would wait long, so there is none now
    };
    // Begins a copy of the arrays as they are now. nullptr: no memory.
    static std::shared_ptr<ArrayCopy> begin(std::vector<Array> arrays, Remote remote = {});

    void before_change(size_t array, uint64_t first, uint64_t bytes);
    void settle() { settled_ = true; } // the arrays will not change any more

  private:
    static constexpr uint64_t page = 4096; // the unit of copying, and of page faults

    ArrayCopy(std::vector<Array> arrays, Remote remote);
    bool copy_more(uint64_t bytes) override;
    void let_go() override;
    // Copies the pages of the array that were not copied yet; returns their number. now: all of
    // them, however long it waits.
    uint64_t copy(size_t array, uint64_t first, uint64_t end, bool now);

    std::vector<Array> arrays_;
    Remote remote_;
    std::vector<Marks> marks_; // by array: its copied pages
    size_t array_ = 0;         // copy_more() continues in this array ...
    uint64_t page_ = 0;        // ... at this page
    bool settled_ = false;
};

} // namespace dtrain::ps

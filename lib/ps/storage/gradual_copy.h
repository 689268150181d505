// A copy of memory as it was at one moment, made in pieces while that goes on changing.
// SPDX-License-Identifier: Apache-2.0
//
// Whoever is about to change what is copied says so first: what of it has not been copied yet is
// copied then. So a long copy needs the lock of what it copies only for a piece at a time.
#pragma once
#include "ps/table/buffer.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::ps {

// A bit for each of many things: whether it has been done.
class Marks {
  public:
    bool allocate(uint64_t count); // none is marked; false: no memory
    bool marked(uint64_t i) const { return (word(i) >> i % 64 & 1) != 0; }
    void mark(uint64_t i) { word(i) |= uint64_t{1} << i % 64; }
    // The first of [at, end) that is marked, or is not; end: none.
    uint64_t find(uint64_t at, uint64_t end, bool marked) const;
    uint32_t count(uint64_t at, uint64_t end) const; // marked; at: a multiple of 64

  private:
    uint64_t &word(uint64_t i) const {
        return *reinterpret_cast<uint64_t *>(words_.at(i / 64 * sizeof(uint64_t)));
    }
    Buffer words_;
};

// Under the lock of what is copied, but for targets().
class GradualCopy {
  public:
    enum class State : uint8_t { going, done, canceled };
    // Memory that it writes, of its own.
    struct Target {
        std::shared_ptr<Buffer> memory;
        uint64_t bytes;
    };
    virtual ~GradualCopy() = default;

    const std::vector<Target> &targets() const { return targets_; }
    State state() const { return state_; }
    // Copies about so many bytes more.
    State advance(uint64_t bytes);
    void cancel(); // and lets go of what it copies

  protected:
    explicit GradualCopy(std::vector<Target> targets) : targets_(std::move(targets)) {}
    bool going() const { return state_ == State::going; }
    virtual bool copy_more(uint64_t bytes) = 0; // false: all has been copied
    virtual void let_go() = 0;

  private:
    std::vector<Target> targets_;
    State state_ = State::going;
};

// Of arrays.
class ArrayCopy final : public GradualCopy {
  public:
    struct Array {
        std::shared_ptr<const Buffer> from; // nullptr: zeros
        std::shared_ptr<Buffer> to;
        uint64_t bytes;
    };
    // As they are now. nullptr: no memory.
    static std::shared_ptr<ArrayCopy> begin(std::vector<Array> arrays);

    void before_change(size_t array, uint64_t first, uint64_t bytes);
    void settle() { settled_ = true; } // nobody changes the arrays any more

  private:
    static constexpr uint64_t page = 4096; // copied as a whole: also what one page fault costs

    explicit ArrayCopy(std::vector<Array> arrays);
    bool copy_more(uint64_t bytes) override;
    void let_go() override;
    // Those pages of the array that have not been; returns how many these were.
    uint64_t copy(size_t array, uint64_t first, uint64_t end);

    std::vector<Array> arrays_;
    std::vector<Marks> marks_; // by array, of its pages
    size_t array_ = 0;         // copy_more() goes on here,
    uint64_t page_ = 0;        // and here in it
    bool settled_ = false;
};

} // namespace dtrain::ps

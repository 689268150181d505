// What all fuzz targets share: the functions that each defines, and the parts of its input.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

extern "C" {
// Runs one input; returns 0. Ends the process if a property does not hold.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
// Of libFuzzer, for targets with an LLVMFuzzerCustomMutator().
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
}

// Unlike assert(), in every build.
#define FUZZ_REQUIRE(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);    \
            std::abort();                                                                          \
        }                                                                                          \
    } while (false)

namespace dtrain::fuzz {

using Bytes = std::vector<uint8_t>;

// Valid inputs, from which a fuzzer begins; each target defines it. They are also the files
// corpus/<target>/seed-<number>, and replay.cpp compares the two.
std::vector<Bytes> seeds();

inline Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// Takes the input apart from its beginning; behind its end there are zeros.
class Input {
  public:
    Input(const uint8_t *data, size_t size) : rest_(data, size) {}

    bool empty() const { return rest_.empty(); }
    template <class T> T take() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value{};
        const size_t size = std::min(sizeof value, rest_.size());
        if (size > 0) std::memcpy(static_cast<void *>(&value), rest_.data(), size);
        rest_ = rest_.subspan(size);
        return value;
    }
    uint8_t byte() { return take<uint8_t>(); }
    // A copy, so that a sanitizer sees its ends: `most` bytes, or fewer at the end.
    Bytes bytes(size_t most) {
        const size_t size = std::min(most, rest_.size());
        Bytes out(rest_.begin(), rest_.begin() + long(size));
        rest_ = rest_.subspan(size);
        return out;
    }
    Bytes rest() { return bytes(rest_.size()); }
    // Up to the next '\n', which is taken, too.
    std::string line() {
        const auto end = std::find(rest_.begin(), rest_.end(), '\n');
        std::string out(rest_.begin(), end);
        rest_ = rest_.subspan(size_t(end - rest_.begin()) + (end != rest_.end() ? 1 : 0));
        return out;
    }

  private:
    std::span<const uint8_t> rest_;
};

// Puts an input together, for seeds().
class Made {
  public:
    template <class T> Made &put(const T &value) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto *from = reinterpret_cast<const uint8_t *>(&value);
        bytes_.insert(bytes_.end(), from, from + sizeof value);
        return *this;
    }
    Made &byte(uint8_t value) { return put(value); }
    template <class Range> Made &all(const Range &range) {
        bytes_.insert(bytes_.end(), range.begin(), range.end());
        return *this;
    }
    operator Bytes() const { return bytes_; }

  private:
    Bytes bytes_;
};

} // namespace dtrain::fuzz

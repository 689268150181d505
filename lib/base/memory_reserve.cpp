// The reserve as a list of free pieces, and the library's operator new, which falls back on it.
// SPDX-License-Identifier: Apache-2.0
#include "base/memory_reserve.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>

namespace dtrain {
namespace {

constexpr size_t piece_unit = MemoryReserve::alignment; // pieces and their headers are whole units

// Header before each piece, free or in use.
struct Piece {
    size_t units = 0;      // including the header
    Piece *next = nullptr; // next free piece, ordered by address
};
static_assert(sizeof(Piece) <= piece_unit);

std::mutex mutex;
constinit Piece *first_free = nullptr;
constinit bool begun = false;

Piece *end_of(Piece *piece) {
    return reinterpret_cast<Piece *>(reinterpret_cast<std::byte *>(piece) +
                                     piece->units * piece_unit);
}

} // namespace

alignas(MemoryReserve::alignment) constinit std::byte MemoryReserve::memory_[total] = {};
constinit std::atomic<size_t> MemoryReserve::used_ = 0;

void *MemoryReserve::take(size_t bytes) {
    if (bytes > largest) return nullptr;
    const size_t wanted = 1 + (std::max<size_t>(bytes, 1) + piece_unit - 1) / piece_unit;
    std::lock_guard lock(mutex);
    if (!begun) first_free = new (memory_) Piece{total / piece_unit, nullptr};
    begun = true;
    for (Piece **link = &first_free; *link != nullptr; link = &(*link)->next) {
        Piece *piece = *link;
        if (piece->units < wanted) continue;
        if (piece->units > wanted) {
            const size_t rest = piece->units - wanted;
            piece->units = wanted;
            *link = new (end_of(piece)) Piece{rest, piece->next};
        } else {
            *link = piece->next;
        }
        used_ += wanted;
        return reinterpret_cast<std::byte *>(piece) + piece_unit;
    }
    return nullptr;
}

void MemoryReserve::give_back(void *place) {
    auto *piece = reinterpret_cast<Piece *>(static_cast<std::byte *>(place) - piece_unit);
    std::lock_guard lock(mutex);
    used_ -= piece->units;
    Piece **link = &first_free, *before = nullptr;
    while (*link != nullptr && *link < piece) {
        before = *link;
        link = &before->next;
    }
    piece->next = *link;
    *link = piece;
    const auto join = [](Piece *low) { // with the piece that follows it
        if (low == nullptr || low->next == nullptr || end_of(low) != low->next) return;
        low->units += low->next->units;
        low->next = low->next->next;
    };
    join(piece);
    join(before);
}

bool MemoryReserve::memory_is_back() {
    // Volatile: otherwise the compiler may drop the call.
    void *volatile piece = std::malloc(largest);
    const bool back = piece != nullptr;
    std::free(piece);
    return back;
}

} // namespace dtrain

// Sanitizers replace operator new themselves and see more that way.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

using dtrain::MemoryReserve;

namespace {

void *allocate(size_t bytes) noexcept {
    void *piece = std::malloc(bytes);
    return piece != nullptr ? piece : MemoryReserve::take(bytes);
}

void *allocate(size_t bytes, std::align_val_t alignment) noexcept {
    const auto border = static_cast<size_t>(alignment);
    void *piece = std::aligned_alloc(border, (bytes + border - 1) / border * border);
    if (piece != nullptr || border > MemoryReserve::alignment) return piece;
    return MemoryReserve::take(bytes);
}

void *or_throw(void *piece) {
    if (piece == nullptr) throw std::bad_alloc();
    return piece;
}

void release(void *piece) noexcept {
    if (MemoryReserve::holds(piece)) [[unlikely]]
        MemoryReserve::give_back(piece);
    else
        std::free(piece);
}

} // namespace

// All other forms of operator new end here. Weak: a program that links the static library and
// defines operator new itself uses its own.
#define OURS [[gnu::weak]]
OURS void *operator new(size_t bytes) { return or_throw(allocate(bytes)); }
OURS void *operator new[](size_t bytes) { return or_throw(allocate(bytes)); }
OURS void *operator new(size_t bytes, const std::nothrow_t &) noexcept { return allocate(bytes); }
OURS void *operator new[](size_t bytes, const std::nothrow_t &) noexcept { return allocate(bytes); }
OURS void *operator new(size_t bytes, std::align_val_t border) {
    return or_throw(allocate(bytes, border));
}
OURS void *operator new(size_t bytes, std::align_val_t border, const std::nothrow_t &) noexcept {
    return allocate(bytes, border);
}
OURS void operator delete(void *piece) noexcept { release(piece); }
OURS void operator delete[](void *piece) noexcept { release(piece); }
OURS void operator delete(void *piece, size_t) noexcept { release(piece); }
OURS void operator delete[](void *piece, size_t) noexcept { release(piece); }
OURS void operator delete(void *piece, std::align_val_t) noexcept { release(piece); }
OURS void operator delete(void *piece, size_t, std::align_val_t) noexcept { release(piece); }

#endif

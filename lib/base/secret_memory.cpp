// Pages for keys, cut into pieces of a power of two.
// SPDX-License-Identifier: Apache-2.0
#include "base/secret_memory.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>

namespace dtrain {
namespace {

constexpr size_t least_piece = 64, most_piece = 4096, pages_at_once = 64 << 10;
constexpr int sizes = 7; // 64, 128, ... 4096
static_assert(least_piece << (sizes - 1) == most_piece);

struct Piece {
    Piece *next;
};

struct Pieces {
    std::mutex mutex;
    Piece *free[sizes] = {};
};
// Never destroyed: objects with keys may outlive static destructors. A child begins anew, since
// another thread of its parent may have held the mutex, and its pages are empty.
Pieces &pieces() {
    static Pieces *const all = [] {
        auto *made = new Pieces;
        pthread_atfork(nullptr, nullptr, [] { new (&pieces()) Pieces; });
        return made;
    }();
    return *all;
}

int index_of(size_t length) {
    const size_t size = std::bit_ceil(length < least_piece ? least_piece : length);
    return std::countr_zero(size) - std::countr_zero(least_piece);
}

// All of these are refused on some systems, where the keys are as safe as other memory.
void hide(void *pages) {
    madvise(pages, pages_at_once, MADV_DONTDUMP);
    madvise(pages, pages_at_once, MADV_WIPEONFORK);
    mlock(pages, pages_at_once);
}

bool add_pages(Piece *&list, size_t size) {
    void *pages =
        mmap(nullptr, pages_at_once, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return false;
    hide(pages);
    auto *at = static_cast<uint8_t *>(pages);
    for (size_t i = 0; i < pages_at_once; i += size) list = new (at + i) Piece{list};
    return true;
}

} // namespace

void *take_secret_memory(size_t length) {
    if (length > most_piece) return nullptr;
    const int index = index_of(length);
    Pieces &all = pieces();
    const std::lock_guard lock(all.mutex);
    Piece *&list = all.free[index];
    if (list == nullptr && !add_pages(list, least_piece << index)) return nullptr;
    Piece *piece = list;
    list = piece->next;
    return piece;
}

void give_back_secret_memory(void *piece, size_t length) {
    if (piece == nullptr) return;
    explicit_bzero(piece, length);
    const int index = index_of(length);
    Pieces &all = pieces();
    const std::lock_guard lock(all.mutex);
    all.free[index] = new (piece) Piece{all.free[index]};
}

} // namespace dtrain

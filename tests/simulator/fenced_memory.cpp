// Takes pages one after the other from a large range of addresses.
// SPDX-License-Identifier: Apache-2.0
#include "fenced_memory.h"

#include "real.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace dtrain::simulator {
namespace {

constexpr size_t page = 4096, range_bytes = size_t{1} << 42, most_bytes = 1 << 20;

// At the beginning of a piece's first page.
struct Heading {
    uint32_t pages, bytes;
};
constexpr size_t heading_bytes = 16;
static_assert(sizeof(Heading) <= heading_bytes);

constinit std::atomic<char *> first{nullptr}; // of the range; nullptr: not known yet
constinit std::atomic<size_t> taken{0};       // bytes of the range
char none;                                    // `first` if fences are not used

char *make_range() {
    const char *wanted = getenv("DTRAIN_SIMULATOR_FENCES");
    char *range = &none;
    if (wanted != nullptr && strcmp(wanted, "1") == 0) {
        void *made = REAL(mmap)(nullptr, range_bytes, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made != MAP_FAILED) range = static_cast<char *>(made);
    }
    char *before = nullptr;
    return first.compare_exchange_strong(before, range) ? range : before;
}

char *range() {
    char *known = first;
    return known != nullptr ? known : make_range();
}

// It lies at least that far from the beginning of its first page, and not further than that from
// the beginning of its second.
Heading *heading_of(const void *piece) {
    const auto at = reinterpret_cast<uintptr_t>(piece) - heading_bytes;
    return reinterpret_cast<Heading *>(at / page * page);
}

} // namespace

void *FencedMemory::take(size_t bytes, size_t border) {
    if (range() == &none || bytes > most_bytes || border > page) return nullptr;
    border = std::max(border, heading_bytes);
    const size_t rounded = (bytes + border - 1) / border * border;
    const size_t all = (rounded + heading_bytes + page - 1) / page * page;
    const size_t at = taken.fetch_add(all + page);
    if (at + all + page > range_bytes) return nullptr;
    char *const begin = range() + at;
    if (REAL(mprotect)(begin, all, PROT_READ | PROT_WRITE) != 0) return nullptr; // too many pieces
    *reinterpret_cast<Heading *>(begin) = {uint32_t(all / page), uint32_t(bytes)};
    return begin + all - rounded;
}

bool FencedMemory::owns(const void *piece) {
    const auto at = reinterpret_cast<uintptr_t>(piece),
               begin = reinterpret_cast<uintptr_t>(first.load());
    return begin != 0 && first != &none && at >= begin && at < begin + range_bytes;
}

size_t FencedMemory::bytes_of(const void *piece) { return heading_of(piece)->bytes; }

void FencedMemory::release(void *piece) {
    Heading *const heading = heading_of(piece);
    const size_t all = heading->pages * page;
    // Frees the pages, too.
    REAL(mmap)
    (heading, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

} // namespace dtrain::simulator

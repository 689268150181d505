// What the library lives on when there is no memory left.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/memory_reserve.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

using dtrain::MemoryReserve;

struct Piece {
    unsigned char *bytes;
    size_t size;
    unsigned char mark;
};

// Pieces of all sizes, taken and freed in any order, share no byte; at the end all is there.
void use(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Piece> pieces;
    for (int i = 0; i < 20'000; i++) {
        if (!pieces.empty() && random() % 2 == 0) {
            std::swap(pieces[random() % pieces.size()], pieces.back());
            const Piece piece = pieces.back();
            pieces.pop_back();
            for (size_t k = 0; k < piece.size; k++) assert_int_equal(piece.bytes[k], piece.mark);
            MemoryReserve::give_back(piece.bytes);
            continue;
        }
        const size_t size = random() % 3 == 0 ? random() % MemoryReserve::largest : random() % 500;
        auto *bytes = static_cast<unsigned char *>(MemoryReserve::take(size));
        if (bytes == nullptr) continue; // full
        assert_true(MemoryReserve::holds(bytes) && MemoryReserve::in_use());
        assert_int_equal(reinterpret_cast<uintptr_t>(bytes) % MemoryReserve::alignment, 0);
        pieces.push_back({bytes, size, static_cast<unsigned char>(random())});
        std::memset(bytes, pieces.back().mark, size);
    }
    for (const Piece &piece : pieces) MemoryReserve::give_back(piece.bytes);
}

void expect_all_of_it() {
    assert_false(MemoryReserve::in_use());
    std::vector<void *> pieces;
    while (void *piece = MemoryReserve::take(MemoryReserve::largest)) pieces.push_back(piece);
    assert_true(pieces.size() * MemoryReserve::largest > MemoryReserve::total * 9 / 10);
    for (void *piece : pieces) MemoryReserve::give_back(piece);
}

void pieces_share_nothing(void **) {
    const char *text = std::getenv("DTRAIN_TEST_SEED");
    const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
    use(seed);
    expect_all_of_it();
}

void threads_share_it(void **) {
    std::vector<std::thread> threads;
    for (uint64_t seed = 1; seed <= 3; seed++) threads.emplace_back(use, seed);
    for (std::thread &thread : threads) thread.join();
    expect_all_of_it();
}

void large_pieces_are_not_taken(void **) {
    assert_null(MemoryReserve::take(MemoryReserve::largest + 1));
    void *piece = MemoryReserve::take(0);
    assert_non_null(piece);
    assert_false(MemoryReserve::drawn_on()); // malloc() has some
    MemoryReserve::give_back(piece);
    int elsewhere = 0;
    assert_false(MemoryReserve::holds(&elsewhere));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(pieces_share_nothing),
        cmocka_unit_test(threads_share_it),
        cmocka_unit_test(large_pieces_are_not_taken),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

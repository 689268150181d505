// More elements, and more bytes, than 31 and 32 bits count.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <algorithm>
#include <sys/mman.h>

namespace {

constexpr uint64_t many = (uint64_t{1} << 31) + 17;
constexpr uint64_t needed = uint64_t{10} << 30; // bytes of memory, of all ranks
constexpr int skipped = 77;

// Memory that is freed at the end, on large pages where there are some.
template <class T> class Huge {
  public:
    explicit Huge(uint64_t count) : count_(count) {
        void *at =
            mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(at != MAP_FAILED);
        madvise(at, bytes(), MADV_HUGEPAGE);
        data_ = static_cast<T *>(at);
    }
    ~Huge() { munmap(data_, bytes()); }
    Huge(const Huge &) = delete;
    Huge &operator=(const Huge &) = delete;
    T *data() { return data_; }
    uint64_t count() const { return count_; }

  private:
    size_t bytes() const { return count_ * sizeof(T); }
    const uint64_t count_;
    T *data_;
};

// What `rank` has at byte `at`: blocks that are 2^31 or 2^32 bytes apart differ.
constexpr uint64_t block = 4096;
struct Block {
    Block(uint64_t at, int rank) {
        const uint64_t number = at / block % 251;
        for (uint64_t i = 0; i < block; i++) bytes[i] = uint8_t((i + number) * 7 + uint64_t(rank));
    }
    uint8_t bytes[block];
};

void fill(uint8_t *data, uint64_t count, int rank) {
    for (uint64_t at = 0; at < count; at += block)
        std::memcpy(data + at, Block(at, rank).bytes, std::min(block, count - at));
}

bool holds(const uint8_t *data, uint64_t count, int rank) {
    for (uint64_t at = 0; at < count; at += block)
        if (std::memcmp(data + at, Block(at, rank).bytes, std::min(block, count - at)) != 0)
            return false;
    return true;
}

bool holds_most(const uint8_t *data, uint64_t count) { // of ranks 0 and 1
    for (uint64_t at = 0; at < count; at += block) {
        Block most(at, 0);
        const Block other(at, 1);
        for (uint64_t i = 0; i < block; i++)
            most.bytes[i] = std::max(most.bytes[i], other.bytes[i]);
        if (std::memcmp(data + at, most.bytes, std::min(block, count - at)) != 0) return false;
    }
    return true;
}

void take_most(dtrain_comm_t *comm, int rank, Huge<uint8_t> &data) {
    fill(data.data(), many, rank);
    OK(dtrain_allreduce(comm, data.data(), data.data(), many, DTRAIN_U8, DTRAIN_MAX, nullptr,
                        nullptr));
    REQUIRE(holds_most(data.data(), many));
}

void in_shared_memory(void **) {
    ranks::run(2, {}, [](int rank, dtrain_comm_t *comm) {
        Huge<uint8_t> data(many);
        take_most(comm, rank, data);
        const uint64_t half = many / 2; // blocks of fewer than 2^31, together more
        uint8_t *own = data.data() + half * uint64_t(rank);
        std::memset(data.data(), 0, many);
        fill(own, half, rank);
        OK(dtrain_allgather(comm, own, data.data(), half, DTRAIN_U8, nullptr, nullptr));
        REQUIRE(holds(data.data(), half, 0) && holds(data.data() + half, half, 1));
    });
}

void over_tcp(void **) {
    ranks::run(2, {{"transports", "tcp"}}, [](int rank, dtrain_comm_t *comm) {
        Huge<uint8_t> data(many);
        take_most(comm, rank, data);
        if (rank == 0) {
            fill(data.data(), many, 9);
            OK(dtrain_send(comm, data.data(), many, DTRAIN_U8, 1, 0, nullptr, nullptr));
        } else {
            OK(dtrain_recv(comm, data.data(), many, DTRAIN_U8, 0, 0, nullptr, nullptr));
            REQUIRE(holds(data.data(), many, 9));
        }
    });
}

void more_bytes_than_32_bits_count(void **) {
    ranks::run(2, {}, [](int rank, dtrain_comm_t *comm) {
        Huge<uint64_t> data((uint64_t{1} << 29) + 3);
        for (uint64_t i = 0; i < data.count(); i++) data.data()[i] = i * uint64_t(rank + 1);
        OK(dtrain_allreduce(comm, data.data(), data.data(), data.count(), DTRAIN_U64, DTRAIN_SUM,
                            nullptr, nullptr));
        uint64_t wrong = 0;
        for (uint64_t i = 0; i < data.count(); i++) wrong += data.data()[i] != 3 * i;
        REQUIRE(wrong == 0);
    });
}

uint64_t available_memory() {
    unsigned long long kib = 0;
    char line[128];
    FILE *file = std::fopen("/proc/meminfo", "re");
    while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
        if (std::sscanf(line, "MemAvailable: %llu", &kib) == 1) break;
    if (file != nullptr) std::fclose(file);
    return kib << 10;
}

} // namespace

int main() {
    const uint64_t available = available_memory();
    if (available < needed) {
        std::printf("skipped: needs %llu MiB of memory, %llu are available\n",
                    static_cast<unsigned long long>(needed >> 20),
                    static_cast<unsigned long long>(available >> 20));
        return skipped;
    }
    const CMUnitTest tests[] = {
        cmocka_unit_test(in_shared_memory),
        cmocka_unit_test(over_tcp),
        cmocka_unit_test(more_bytes_than_32_bits_count),
    };
    return cmocka_run_group_tests_name("huge", tests, nullptr, nullptr);
}

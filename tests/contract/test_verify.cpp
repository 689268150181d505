// With option verify no bit that changes on its way, or in one rank's result, goes unseen.
// SPDX-License-Identifier: Apache-2.0
#include "contract/algorithms.h"
#include "contract/collective_case.h"
#include "contract/ranks.h"

#include <atomic>
#include <barrier>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using ranks::last_error;
using ranks::Options;

bool says(const char *text) { return last_error().find(text) != std::string::npos; }

// A network that changes one bit of each message with this chance, in thousandths, once a device
// has sent `after` messages.
Options flipping(const std::string &over, const char *verify, const char *flip, const char *after,
                 uint64_t seed) {
    return {{"transports", "fault"},
            {"plugin.path", PLUGIN_FOLDER},
            {"plugin.fault.over", over},
            {"plugin.fault.flip", flip},
            {"plugin.fault.after", after},
            {"plugin.fault.seed", std::to_string(seed)},
            {"verify", verify},
            {"ps.retry", "20ms"},
            {"log.level", "error"}};
}

// Those of DTRAIN_TEST_NETWORK, or those that are always there.
std::vector<std::string> networks() {
    const char *text = std::getenv("DTRAIN_TEST_NETWORK");
    if (text == nullptr) return {"tcp", "shm"};
    const std::string all = text, key = "transports=";
    const size_t at = all.find(key) + key.size();
    return {all.substr(at, all.find(' ', at) - at)};
}
#ifdef __OPTIMIZE__
constexpr uint64_t jobs = 8, most_calls = 400;
constexpr int pushes = 300;
#else
constexpr uint64_t jobs = 3, most_calls = 200; // sanitizers are slow
constexpr int pushes = 120;
#endif

struct Found {
    std::atomic<int> wrong{0}, errors{0};
};

// Runs random collectives until one fails.
void run_cases(const std::string &over, const char *verify, int size, uint64_t seed, Found &found) {
    const auto options = [&](int rank) {
        return flipping(over, verify, "5", "60", seed * 16 + uint64_t(rank) + 1);
    };
    const auto body = [&](int rank, dtrain_context_t *, dtrain_comm_t *comm) {
        for (uint64_t i = 0; i < most_calls; i++) {
            cases::Part part(cases::generate(seed * most_calls + i, size), rank);
            const dtrain_status_t s = part.post(comm, nullptr, nullptr);
            if (s != DTRAIN_OK) {
                REQUIRE(s == DTRAIN_ERR_CORRUPT);
                REQUIRE(says("rank "));
                REQUIRE(says("changed") || says("different results") || says("its result differs"));
                found.errors++;
                return;
            }
            if (part.first_difference() >= 0) found.wrong++;
        }
    };
    ranks::run_each(size, 0, options, body);
}

void test_changed_messages_of_collectives(void **) {
    for (const std::string &over : networks()) {
        // Without verify, ranks of a host that share memory send no messages.
        const bool shares = over == "shm";
        Found unseen, seen;
        for (uint64_t seed = 1; seed <= jobs; seed++) {
            if (!shares) run_cases(over, "no", 2 + int(seed % 3), seed, unseen);
            run_cases(over, "yes", 2 + int(seed % 3), seed, seen);
        }
        REQUIRE(shares || unseen.wrong > 0); // or nothing would be shown
        REQUIRE(unseen.errors == 0);
        REQUIRE(seen.wrong == 0);
        REQUIRE(seen.errors > 0);
    }
}

// The message fails, and no other one.
void test_changed_messages(void **) {
    constexpr int messages = 400;
    for (const std::string &over : networks()) {
        std::atomic<int> intact{0}, changed{0};
        const auto options = [&](int rank) {
            return flipping(over, "yes", rank == 0 ? "100" : "0", "50", 7);
        };
        ranks::run_each(2, 0, options, [&](int rank, dtrain_context_t *, dtrain_comm_t *comm) {
            for (int i = 0; i < messages; i++) {
                const size_t bytes = i % 5 == 0 ? 300000 : size_t(i);
                std::vector<uint8_t> data(bytes, uint8_t(i));
                if (rank == 0) {
                    OK(dtrain_send(comm, data.data(), bytes, DTRAIN_U8, 1, 3, nullptr, nullptr));
                    continue;
                }
                std::vector<uint8_t> got(bytes + 10);
                const dtrain_status_t s =
                    dtrain_recv(comm, got.data(), got.size(), DTRAIN_U8, 0, 3, nullptr, nullptr);
                if (s == DTRAIN_OK) {
                    got.resize(bytes);
                    REQUIRE(got == data);
                    intact++;
                } else {
                    REQUIRE(s == DTRAIN_ERR_CORRUPT);
                    REQUIRE(
                        says("recv from rank 0: its connection carried bytes that were changed"));
                    changed++;
                }
            }
        });
        REQUIRE(intact > messages / 2);
        REQUIRE(changed > 0);
        REQUIRE(intact + changed == messages);
    }
}

void count_lines(void *count, int32_t, const char *line) {
    if (std::strstr(line, "was changed on its way") != nullptr)
        ++*static_cast<std::atomic<int> *>(count);
}

// Requests of tables are sent again, so each is applied exactly once.
void test_changed_messages_of_tables(void **) {
    constexpr int workers = 2, servers = 1;
    constexpr uint64_t length = 5000, keys_n = 40, dim = 9;
    for (const std::string &over : networks()) {
        std::atomic<int> lines{0};
        std::barrier all(workers);
        const auto options = [&](int member) {
            Options its = flipping(over, "yes", "30", "100", 100 + uint64_t(member));
            its.back() = {"log.level", "warn"};
            return its;
        };
        const auto body = [&](int, dtrain_context_t *context, dtrain_comm_t *comm) {
            OK(dtrain_context_set_log(context, count_lines, &lines));
            dtrain_table_t *dense = nullptr, *sparse = nullptr;
            dtrain_table_params_t params;
            DTRAIN_INIT(&params);
            params.dtype = DTRAIN_F32;
            params.length = length;
            params.rule = DTRAIN_RULE_ADD;
            OK(dtrain_table_create(comm, "dense", &params, &dense));
            params.length = 0;
            params.dim = dim;
            OK(dtrain_table_create(comm, "sparse", &params, &sparse));
            const std::vector<float> ones(length, 1);
            std::vector<uint64_t> keys;
            for (uint64_t k = 0; k < keys_n; k++) keys.push_back(k * k);
            all.arrive_and_wait(); // no message: the network changes those now
            for (int i = 0; i < pushes; i++) {
                OK(dtrain_table_push(dense, 0, length, ones.data(), nullptr, nullptr));
                OK(dtrain_table_push_rows(sparse, keys.data(), keys_n, ones.data(), nullptr,
                                          nullptr));
            }
            all.arrive_and_wait();
            std::vector<float> got(length);
            OK(dtrain_table_pull(dense, 0, length, got.data(), nullptr, nullptr));
            for (float x : got) REQUIRE(x == pushes * workers);
            got.assign(keys_n * dim, 0);
            OK(dtrain_table_pull_rows(sparse, keys.data(), keys_n, got.data(), nullptr, nullptr));
            for (float x : got) REQUIRE(x == pushes * workers);
            dtrain_table_stats_t stats;
            DTRAIN_INIT(&stats);
            OK(dtrain_stats_table(dense, -1, &stats));
            REQUIRE(stats.repeats > 0);
            all.arrive_and_wait();
            OK(dtrain_table_destroy(dense));
            OK(dtrain_table_destroy(sparse));
        };
        ranks::run_each(workers, servers, options, body);
        REQUIRE(lines > 0);
    }
}

// Two pages at two addresses that are the same memory: what is written to one spoils the other.
class BadMemory {
  public:
    BadMemory() {
        const int fd = memfd_create("bad", MFD_CLOEXEC);
        REQUIRE(fd >= 0 && ftruncate(fd, long(page)) == 0);
        at_ = static_cast<uint8_t *>(
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        for (size_t i = 0; i < bytes; i += page)
            REQUIRE(mmap(at_ + i, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
                    at_ + i);
        close(fd);
    }
    ~BadMemory() { munmap(at_, bytes); }
    BadMemory(const BadMemory &) = delete;
    BadMemory &operator=(const BadMemory &) = delete;
    void *data() const { return at_; }

    static constexpr size_t page = 4096, bytes = 2 * page;

  private:
    uint8_t *at_ = nullptr;
};

constexpr uint64_t count = BadMemory::bytes / sizeof(float);

// Rank 0 adds up what the others send to it in the memory of its result, and sends none of it.
dtrain_status_t add_up(dtrain_comm_t *comm, void *to) {
    std::vector<float> from(count);
    for (uint64_t i = 0; i < count; i++) from[i] = float(i);
    return dtrain_allreduce(comm, from.data(), to, count, DTRAIN_F32, DTRAIN_SUM, nullptr, nullptr);
}

// `results`: of so many calls one has its results compared; 0: none.
void spoil(int size, int results) {
    const Options options = {{"verify", "yes"},
                             {"verify.results", std::to_string(results)},
                             {"allreduce.algorithm", "direct"}};
    constexpr int most = 12;
    ranks::run(size, options, [&](int rank, dtrain_comm_t *comm) {
        BadMemory bad;
        std::vector<uint8_t> good(BadMemory::bytes);
        void *to = rank == 0 ? bad.data() : good.data();
        int done = 0;
        while (done < most && add_up(comm, to) == DTRAIN_OK) done++;
        if (results == 0) {
            REQUIRE(done == most);
            return;
        }
        // A rank that is not beside rank 0 hears of it in the next call.
        REQUIRE(done <= results);
        REQUIRE(add_up(comm, to) == DTRAIN_ERR_CORRUPT);
        REQUIRE(says(size == 2 ? "have different results" : "rank 0: its result differs"));
    });
}

void test_a_spoilt_result(void **) {
    for (const int results : {0, 1, 4})
        for (const int size : {2, 4, 5}) spoil(size, results);
}

// What a message becomes in its receiver's memory is a part of its way.
void test_a_message_to_bad_memory(void **) {
    ranks::run(2, {{"verify", "yes"}, {"verify.results", "0"}}, [&](int rank, dtrain_comm_t *comm) {
        BadMemory bad;
        std::vector<float> good(count);
        for (uint64_t i = 0; i < count; i++) good[i] = float(i);
        void *data = rank == 1 ? bad.data() : good.data();
        const dtrain_status_t s =
            dtrain_broadcast(comm, data, count, DTRAIN_F32, 0, nullptr, nullptr);
        REQUIRE(s == DTRAIN_ERR_CORRUPT || rank == 0); // which may have sent all before
        if (rank == 1) REQUIRE(says("rank 0: its connection carried bytes that were changed"));
    });
}

// Zeros of either sign, NaNs, infinities and ones.
struct Odd {
    uint32_t dtype;
    uint64_t bits[8];
};
constexpr Odd odd[] = {
    {DTRAIN_F32,
     {0, 0x80000000, 0x7fc00001, 0xff812345, 0x7f800000, 0xff800000, 0x3f800000, 0xbf800000}},
    {DTRAIN_F64,
     {0, 1ull << 63, 0x7ff8000000000001, 0xfff0000012345678, 0x7ff0000000000000, 0xfff0000000000000,
      0x3ff0000000000000, 0xbff0000000000000}},
    {DTRAIN_F16, {0, 0x8000, 0x7e01, 0xfc12, 0x7c00, 0xfc00, 0x3c00, 0xbc00}},
    {DTRAIN_BF16, {0, 0x8000, 0x7fc1, 0xff81, 0x7f80, 0xff80, 0x3f80, 0xbf80}},
};

void add_up_odd_ones(int rank, dtrain_comm_t *comm) {
    constexpr uint64_t elements = 4096;
    for (const Odd &its : odd)
        for (const uint32_t op : {DTRAIN_SUM, DTRAIN_MIN, DTRAIN_MAX, DTRAIN_AVG}) {
            const size_t size = dtrain_dtype_size(its.dtype);
            std::vector<uint8_t> from(elements * size), to(from.size());
            for (size_t i = 0; i < elements; i++)
                std::memcpy(&from[i * size], &its.bits[(i >> 3 * rank % 12) % 8], size);
            const dtrain_status_t s = dtrain_allreduce(comm, from.data(), to.data(), elements,
                                                       its.dtype, op, nullptr, nullptr);
            if (s == DTRAIN_ERR_UNSUPPORTED) return; // the algorithm, for so many ranks
            OK(s);
        }
}

// Ranks get the same bits, whatever the order of the operands.
void test_equal_results(void **) {
    for (const std::string &algorithm : tested_algorithms())
        for (const int size : {2, 3, 4, 5})
            ranks::run(
                size,
                {{"verify", "yes"}, {"verify.results", "1"}, {"allreduce.algorithm", algorithm}},
                add_up_odd_ones);
}

// Rank 1 is told why it cannot join, and rank 0 whom it waited for.
void test_all_or_none(void **) {
    ranks::Exchange exchange(2);
    const char *const settings[2][2] = {{"verify", "yes"}, {"verify", "no"}};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; rank++)
        threads.emplace_back([&, rank] {
            dtrain_context_t *context = ranks::make_context(
                {{settings[rank][0], settings[rank][1]}, {"log.level", "error"}});
            ranks::Member member = {&exchange, rank};
            dtrain_comm_params_t params;
            DTRAIN_INIT(&params);
            params.size = 2;
            params.rank = rank;
            params.oob = &ranks::Member::allgather;
            params.oob_arg = &member;
            params.timeout_ns = 2'000'000'000;
            dtrain_comm_t *comm = nullptr;
            FAILS(rank == 0 ? DTRAIN_ERR_TIMEOUT : DTRAIN_ERR_CONFIG,
                  dtrain_comm_create(context, "oob", &params, &comm));
            REQUIRE(says("it has option verify=no, rank 0 has options verify=yes "
                         "verify.results=64; set them alike in all processes"));
            OK(dtrain_context_destroy(context));
        });
    for (std::thread &thread : threads) thread.join();
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_messages_of_collectives),
        cmocka_unit_test(test_changed_messages),
        cmocka_unit_test(test_changed_messages_of_tables),
        cmocka_unit_test(test_a_spoilt_result),
        cmocka_unit_test(test_a_message_to_bad_memory),
        cmocka_unit_test(test_equal_results),
        cmocka_unit_test(test_all_or_none),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

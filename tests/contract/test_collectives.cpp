// Property test: every collective against a naive reference, chosen by a seed (DTRAIN_TEST_SEED).
// SPDX-License-Identifier: Apache-2.0
#include "contract/algorithms.h"
#include "contract/collective_case.h"
#include "contract/gpu.h"
#include "contract/ranks.h"

#include <memory>

namespace {

using cases::Case;
using cases::Part;

uint64_t seed() {
    const char *text = std::getenv("DTRAIN_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

[[noreturn]] void wrong(const Case &c, int rank, const char *what, int64_t at) {
    std::fprintf(stderr, "rank %d: %s: %s (byte %lld), seed %llu: %s\n", rank, c.describe().c_str(),
                 what, static_cast<long long>(at), static_cast<unsigned long long>(seed()),
                 ranks::last_error().c_str());
    std::abort();
}

// Several calls at once on several communicators, some blocking, some with a request that is waited
// for at once or later, some with a queue.
class Batch {
  public:
    Batch(int rank, uint64_t local_seed) : rank_(rank), random_(local_seed) {}

    void post(dtrain_context_t *context, dtrain_comm_t *comm, dtrain_cq_t *queue, const Case &c) {
        // Where all ranks share the buffers that matter, they need not go through the window.
        int shared = c.seed % 3 == 0 ? 3 : c.seed % 3 == 1 ? int(random_() % 4) : 0;
        parts_.push_back(std::make_unique<Part>(c, dtrain_comm_rank(comm), context, shared));
        comms_.push_back(comm);
        Part &part = *parts_.back();
        if (gpu::is_on())
            part.move(
                [&](uint8_t *data, size_t bytes) { return images_.place(data, bytes, random_()); });
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        dtrain_request_t *request = nullptr;
        bool with_request = false;
        switch (random_() % 4) { // each rank as it likes
        case 0: break;
        case 1: with_request = true; break;
        case 2: params.flags = DTRAIN_OP_AWAITED; break;
        case 3:
            params.cq = queue;
            params.user_tag = parts_.size();
            queued_++;
        }
        const bool awaited = params.flags == DTRAIN_OP_AWAITED;
        dtrain_status_t s = part.post(comm, &params, with_request || awaited ? &request : nullptr);
        if (s != DTRAIN_OK) wrong(c, rank_, dtrain_status_name(s), -1);
        if (awaited) OK(dtrain_request_wait(request, -1));
        if (request != nullptr) requests_.push_back(request);
    }

    void finish(dtrain_cq_t *queue) {
        std::shuffle(requests_.begin(), requests_.end(), random_);
        for (dtrain_request_t *request : requests_) {
            dtrain_status_t s = DTRAIN_IN_PROGRESS;
            if (random_() % 2)
                while (s == DTRAIN_IN_PROGRESS) s = dtrain_request_test(request);
            OK(dtrain_request_wait(request, -1));
            dtrain_request_free(request);
        }
        while (queued_ > 0) {
            dtrain_event_t events[2];
            int32_t n = dtrain_cq_poll(queue, events, 2, -1);
            REQUIRE(n > 0);
            for (int32_t i = 0; i < n; i++) {
                REQUIRE(events[i].user_tag >= 1 && events[i].user_tag <= parts_.size());
                REQUIRE(events[i].request == nullptr);
                if (events[i].status != DTRAIN_OK) {
                    (void)dtrain_comm_status(comms_[events[i].user_tag - 1]); // for its text
                    wrong(parts_[events[i].user_tag - 1]->the_case(), rank_,
                          dtrain_status_name(events[i].status), -1);
                }
            }
            queued_ -= n;
        }
        images_.take_back();
        for (auto &part : parts_)
            if (int64_t at = part->first_difference(); at >= 0)
                wrong(part->the_case(), rank_, "wrong result", at);
    }

  private:
    const int rank_;
    std::mt19937_64 random_;
    std::vector<std::unique_ptr<Part>> parts_;
    std::vector<dtrain_comm_t *> comms_; // of the parts
    gpu::Images images_;                 // of their buffers
    std::vector<dtrain_request_t *> requests_;
    int queued_ = 0;
};

void many(int size, int rounds, const ranks::Options &options) {
    ranks::run_with_contexts(
        size, options, [&](int rank, dtrain_context_t *context, dtrain_comm_t *world) {
            dtrain_comm_t *comms[3] = {world, nullptr, nullptr};
            dtrain_cq_t *queue = nullptr;
            OK(dtrain_cq_create(context, 0, &queue));
            OK(dtrain_comm_duplicate(world, &comms[1]));
            OK(dtrain_comm_split(world, rank % 2, -rank, &comms[2]));
            std::mt19937_64 random(seed() * 1000 + uint64_t(size));
            for (int round = 0; round < rounds; round++) {
                Batch batch(rank, random() + uint64_t(rank));
                for (uint64_t i = random() % 4 + 1; i > 0; i--) {
                    dtrain_comm_t *comm = comms[random() % 3];
                    batch.post(context, comm, queue,
                               cases::generate(random(), dtrain_comm_size(comm)));
                }
                batch.finish(queue);
            }
            OK(dtrain_cq_destroy(queue));
            OK(dtrain_comm_destroy(comms[1]));
            OK(dtrain_comm_destroy(comms[2]));
        });
}

void all_sizes(int rounds, const ranks::Options &options) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed()));
    for (int size : {1, 2, 3, 4, 5, 7, 8, 9, 12, 17}) many(size, rounds, options);
}

// Under ThreadSanitizer ten times as slow.
#ifdef __SANITIZE_THREAD__
constexpr int rounds_in_shared_memory = 12;
#else
constexpr int rounds_in_shared_memory = 40;
#endif

void in_shared_memory(void **) { all_sizes(rounds_in_shared_memory, {}); }
void over_tcp(void **) { all_sizes(12, {{"transports", "tcp"}}); }
void over_shm_messages(void **) {
    for (const std::string &name : tested_algorithms())
        for (int size : {2, 5, 8}) many(size, 6, {{"allreduce.algorithm", name}});
}
void in_small_chunks(void **) {
    for (int size : {3, 4})
        many(size, 10, {{"transports", "tcp"}, {"chunk.bytes", "4K"}, {"window.bytes", "64K"}});
    for (int size : {3, 4}) many(size, 15, {{"chunk.bytes", "4K"}, {"window.bytes", "64K"}});
}
void with_a_low_eager_limit(void **) {
    for (const char *name : {"tcp", "shm"})
        many(3, 8, {{"transports", name}, {"eager.bytes", "1K"}, {"allreduce.algorithm", "ring"}});
}
void progress_by_the_helper(void **) {
    for (int size : {2, 5}) many(size, 15, {{"progress", "thread"}});
}
void progress_by_the_program(void **) {
    for (int size : {2, 5}) many(size, 15, {{"progress", "manual"}});
    many(3, 8, {{"progress", "manual"}, {"transports", "tcp"}});
}
void more_ranks_than_cores(void **) {
    many(16, 6, {});
    many(16, 3, {{"transports", "tcp"}});
}

// Sums that are not exact: equal on all ranks, and from run to run.
void equal_bits(const ranks::Options &options, int size, size_t count) {
    std::vector<std::vector<float>> results{size_t(size)};
    ranks::run(size, options, [&](int rank, dtrain_comm_t *comm) {
        std::vector<float> mine(count), first(count), again(count);
        std::mt19937 random(uint32_t(rank) + 77);
        std::normal_distribution<float> normal;
        for (float &x : mine) x = normal(random) * 1e3f;
        OK(dtrain_allreduce(comm, mine.data(), first.data(), count, DTRAIN_F32, DTRAIN_AVG, nullptr,
                            nullptr));
        OK(dtrain_allreduce(comm, mine.data(), again.data(), count, DTRAIN_F32, DTRAIN_AVG, nullptr,
                            nullptr));
        REQUIRE(std::memcmp(first.data(), again.data(), count * sizeof(float)) == 0);
        results[size_t(rank)] = std::move(first);
    });
    for (auto &result : results)
        assert_memory_equal(result.data(), results[0].data(), count * sizeof(float));
}
void results_are_equal_bits(void **) {
    for (const char *name : {"auto", "ring", "halving_doubling", "double_tree"})
        for (const char *transports : {"shm,tcp", "tcp"})
            for (size_t count : {3u, 1001u, 100003u})
                equal_bits({{"allreduce.algorithm", name}, {"transports", transports}}, 5, count);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(in_shared_memory),        cmocka_unit_test(over_tcp),
        cmocka_unit_test(over_shm_messages),       cmocka_unit_test(in_small_chunks),
        cmocka_unit_test(with_a_low_eager_limit),  cmocka_unit_test(progress_by_the_helper),
        cmocka_unit_test(progress_by_the_program), cmocka_unit_test(more_ranks_than_cores),
        cmocka_unit_test(results_are_equal_bits),
    };
    return cmocka_run_group_tests_name("collectives", tests, nullptr, nullptr);
}

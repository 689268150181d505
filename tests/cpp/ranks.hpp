// Ranks, and servers, as threads of one process, over dtrain.hpp only.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "require.h"
#include <dtrain.hpp>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

// The call has to throw exactly this, with this in its text.
#define THROWS(kind, part, call)                                                                   \
    do {                                                                                           \
        bool thrown = false;                                                                       \
        try {                                                                                      \
            call;                                                                                  \
        } catch (const dtrain::kind &error) {                                                      \
            thrown = std::strstr(error.what(), part) != nullptr;                                   \
            if (!thrown) std::fprintf(stderr, "%s\n", error.what());                               \
        }                                                                                          \
        REQUIRE(thrown);                                                                           \
    } while (0)

class Exchange {
  public:
    explicit Exchange(size_t size) : size_(size) {}
    dtrain::AllGather of(size_t rank) {
        return [this, rank](dtrain::Span<const std::byte> mine, dtrain::Span<std::byte> all) {
            std::unique_lock<std::mutex> lock(mutex_);
            if (blobs_.size() < all.size()) blobs_.resize(all.size());
            std::memcpy(blobs_.data() + rank * mine.size(), mine.data(), mine.size());
            meet(lock);
            std::memcpy(all.data(), blobs_.data(), all.size());
            meet(lock);
        };
    }

  private:
    void meet(std::unique_lock<std::mutex> &lock) {
        const size_t round = round_;
        if (++arrived_ == size_) {
            arrived_ = 0;
            round_++;
            changed_.notify_all();
        } else {
            changed_.wait(lock, [&] { return round_ != round; });
        }
    }
    size_t size_, arrived_ = 0, round_ = 0;
    std::vector<std::byte> blobs_;
    std::mutex mutex_;
    std::condition_variable changed_;
};

inline dtrain::Options test_options() {
    using namespace std::chrono_literals;
    return dtrain::Options{{"transports", "shm,tcp"}}
        .set("heartbeat.timeout", 30s)
        .set("op.timeout", 30s);
}

// body(context, communicator) in a thread for each rank.
template <class Body> void run(size_t size, size_t servers, Body body) {
    Exchange exchange(size + servers);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < size + servers; i++)
        threads.emplace_back([&, i] {
            try {
                const dtrain::Context context(test_options());
                if (i < size) {
                    const dtrain::Communicator comm =
                        context.join("oob", dtrain::JoinParams()
                                                .size(int(size))
                                                .rank(int(i))
                                                .servers(int(servers))
                                                .allgather(exchange.of(i)));
                    body(context, comm);
                } else {
                    context
                        .serve("oob", dtrain::ServeParams()
                                          .size(int(size))
                                          .servers(int(servers))
                                          .index(int(i - size))
                                          .allgather(exchange.of(i)))
                        .wait();
                }
            } catch (const std::exception &error) {
                std::fprintf(stderr, "rank %zu: %s\n", i, error.what());
                std::abort();
            }
        });
    for (std::thread &thread : threads) thread.join();
}

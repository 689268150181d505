// Ranks as threads of one process, each with a context of its own, over the public API only.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "dtrain.h"
#include "require.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ranks {

using Options = std::vector<std::pair<std::string, std::string>>;

inline std::string last_error() {
    char text[512];
    dtrain_last_error(text, sizeof text);
    return text;
}

// Dies with the library's text when a call does not end as it should.
inline void expect(dtrain_status_t got, dtrain_status_t wanted, const char *what, int line) {
    if (got == wanted) return;
    std::fprintf(stderr, "line %d: %s: %s instead of %s: %s\n", line, what, dtrain_status_name(got),
                 dtrain_status_name(wanted), last_error().c_str());
    std::abort();
}
#define OK(call)            ranks::expect((call), DTRAIN_OK, #call, __LINE__)
#define FAILS(status, call) ranks::expect((call), (status), #call, __LINE__)

// The out-of-band allgather of threads.
class Exchange {
  public:
    explicit Exchange(int size) : size_(size) {}
    void allgather(int rank, const void *send, void *recv, size_t len) {
        std::unique_lock lock(mutex_);
        if (blobs_.size() < len * size_t(size_)) blobs_.resize(len * size_t(size_));
        std::memcpy(blobs_.data() + size_t(rank) * len, send, len);
        wait_for_all(lock);
        std::memcpy(recv, blobs_.data(), len * size_t(size_));
        wait_for_all(lock);
    }

  private:
    void wait_for_all(std::unique_lock<std::mutex> &lock) {
        uint64_t round = round_;
        if (++arrived_ == size_) {
            arrived_ = 0;
            round_++;
            changed_.notify_all();
        } else {
            changed_.wait(lock, [&] { return round_ != round; });
        }
    }
    const int size_;
    int arrived_ = 0;
    uint64_t round_ = 0;
    std::vector<char> blobs_;
    std::mutex mutex_;
    std::condition_variable changed_;
};

struct Member {
    Exchange *exchange;
    int rank;
    static int32_t allgather(void *self, const void *send, void *recv, size_t len) {
        auto *member = static_cast<Member *>(self);
        member->exchange->allgather(member->rank, send, recv, len);
        return 0;
    }
};

// The network of tests is "tcp", or what DTRAIN_TEST_NETWORK says with a list of options, as in
// "transports=ofi ofi.provider=net".
inline void set_network(dtrain_options_t *bag, const char *before) {
    const char *text = getenv("DTRAIN_TEST_NETWORK");
    std::istringstream network(text != nullptr ? text : "transports=tcp");
    for (std::string option; network >> option;) {
        const size_t equals = option.find('=');
        const std::string key = option.substr(0, equals), value = option.substr(equals + 1);
        OK(dtrain_options_set(bag, key.c_str(),
                              ((key == "transports" ? before : "") + value).c_str()));
    }
}

inline dtrain_context_t *make_context(const Options &options) {
    dtrain_options_t *bag = nullptr;
    OK(dtrain_options_create(&bag));
    // A busy machine may keep a thread from running for seconds; tests of failures say otherwise.
    OK(dtrain_options_set(bag, "heartbeat.timeout", "30s"));
    set_network(bag, "shm,");
    for (auto &[key, value] : options) {
        if (key == "transports" && value == "tcp")
            set_network(bag, "");
        else
            OK(dtrain_options_set(bag, key.c_str(), value.c_str()));
    }
    dtrain_context_t *context = nullptr;
    OK(dtrain_context_create(DTRAIN_API_VERSION, bag, &context));
    dtrain_options_destroy(bag);
    return context;
}

using Body = std::function<void(int, dtrain_context_t *, dtrain_comm_t *)>;

// body(rank, context, comm) in one thread per rank; `servers` more threads serve tables until all
// have left.
// options_of(rank); of servers: those that follow the ranks.
inline void run_each(int size, int servers, const std::function<Options(int)> &options_of,
                     const Body &body) {
    Exchange exchange(size + servers);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; rank++)
        threads.emplace_back([&, rank] {
            dtrain_context_t *context = make_context(options_of(rank));
            Member member = {&exchange, rank};
            dtrain_comm_params_t params;
            DTRAIN_INIT(&params);
            params.size = size;
            params.rank = rank;
            params.servers = servers;
            params.oob = &Member::allgather;
            params.oob_arg = &member;
            params.timeout_ns = 60'000'000'000;
            dtrain_comm_t *comm = nullptr;
            OK(dtrain_comm_create(context, "oob", &params, &comm));
            body(rank, context, comm);
            OK(dtrain_comm_destroy(comm));
            OK(dtrain_context_destroy(context));
        });
    for (int index = 0; index < servers; index++)
        threads.emplace_back([&, index] {
            dtrain_context_t *context = make_context(options_of(size + index));
            Member member = {&exchange, size + index};
            dtrain_server_params_t params;
            DTRAIN_INIT(&params);
            params.size = size;
            params.servers = servers;
            params.index = index;
            params.oob = &Member::allgather;
            params.oob_arg = &member;
            params.timeout_ns = 60'000'000'000;
            dtrain_server_t *server = nullptr;
            OK(dtrain_server_create(context, "oob", &params, &server));
            OK(dtrain_server_wait(server, -1));
            OK(dtrain_server_destroy(server));
            OK(dtrain_context_destroy(context));
        });
    for (std::thread &thread : threads) thread.join();
}

// DTRAIN_TEST_TABLES=cuda: dense tables lie in the memory of GPUs, if they can. So all that tests
// say of tables is tested for these, too.
inline dtrain_status_t create_table(dtrain_comm_t *comm, const char *name,
                                    const dtrain_table_params_t *params, dtrain_table_t **table_p) {
    static const bool on_gpus = getenv("DTRAIN_TEST_TABLES") != nullptr;
    if (on_gpus && params != nullptr && params->struct_size == sizeof *params) {
        dtrain_table_params_t own = *params;
        own.memory = DTRAIN_MEM_CUDA;
        const dtrain_status_t status = dtrain_table_create(comm, name, &own, table_p);
        if (status != DTRAIN_ERR_UNSUPPORTED) return status;
    }
    return dtrain_table_create(comm, name, params, table_p);
}

inline void run(int size, int servers, const Options &options, const Body &body) {
    run_each(
        size, servers, [&](int) { return options; }, body);
}
inline void run(int size, int servers, const Options &options,
                const std::function<void(int, dtrain_comm_t *)> &body) {
    run(size, servers, options,
        Body([&](int rank, dtrain_context_t *, dtrain_comm_t *comm) { body(rank, comm); }));
}
inline void run(int size, const Options &options,
                const std::function<void(int, dtrain_comm_t *)> &body) {
    run(size, 0, options, body);
}
inline void run_with_contexts(int size, const Options &options, const Body &body) {
    run(size, 0, options, body);
}

} // namespace ranks

#define dtrain_table_create ranks::create_table

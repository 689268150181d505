// A rank of a small job that uses nearly everything, and may fail anywhere: it allocates nothing of
// its own, goes on with the other calls, and ends all that it has begun.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <sched.h>

namespace small_job {

inline constexpr int size = 2;

// The out-of-band all-gather of threads, which ends when a rank has given up.
struct Exchange {
    std::atomic<uint32_t> arrived{0};
    std::atomic<bool> given_up{false};
    char blobs[size][4096] = {};

    struct Member {
        Exchange *exchange;
        int rank;
    };
    static int32_t allgather(void *self, const void *send, void *recv, size_t len) {
        auto *member = static_cast<Member *>(self);
        return member->exchange->gather(member->rank, send, recv, len);
    }

  private:
    int32_t gather(int rank, const void *send, void *recv, size_t len) {
        if (len > sizeof blobs[0]) return 1;
        std::memcpy(blobs[rank], send, len);
        if (!all_arrived()) return 1;
        for (int r = 0; r < size; r++)
            std::memcpy(static_cast<char *>(recv) + size_t(r) * len, blobs[r], len);
        return all_arrived() ? 0 : 1;
    }
    bool all_arrived() {
        const uint32_t wanted = arrived++ / size * size + size;
        while (arrived < wanted) {
            if (given_up) return false;
            sched_yield();
        }
        return true;
    }
};

struct Setting {
    const char *key, *value; // ends with a key that is nullptr
};

// One rank of it, in a thread of its own.
class Rank {
  public:
    Rank(Exchange &exchange, int rank, const Setting *settings)
        : exchange_(exchange), rank_(rank), settings_(settings) {}

    // Whether all of it went well.
    bool run() {
        begin();
        if (comm_ != nullptr) use();
        end();
        return first_ == DTRAIN_OK;
    }
    // Of the first call that failed.
    dtrain_status_t first() const { return first_; }
    const char *what() const { return what_; }
    const char *text() const { return text_; }
    // Between steps, on each rank.
    void (*between)(const char *step) = nullptr;
    // Without errors: whatever cannot be destroyed is tried again after this.
    void (*before_last_try)() = nullptr;

  private:
    static constexpr int64_t soon = 5'000'000'000;

    bool note(dtrain_status_t status, const char *what) {
        if (between != nullptr) between(what);
        if (status == DTRAIN_OK) return true;
        if (first_ == DTRAIN_OK) {
            first_ = status;
            what_ = what;
            dtrain_last_error(text_, sizeof text_);
        }
        exchange_.given_up = true;
        if (comm_ != nullptr) dtrain_comm_abort(comm_, "enough");
        return false;
    }
#define STEP(call) note((call), #call)

    void begin() {
        dtrain_options_t *options = nullptr;
        if (!STEP(dtrain_options_create(&options))) return;
        for (const Setting *one = settings_; one->key != nullptr; one++)
            STEP(dtrain_options_set(options, one->key, one->value));
        STEP(dtrain_context_create(DTRAIN_API_VERSION, options, &context_));
        dtrain_options_destroy(options);
        if (context_ == nullptr) return;
        Exchange::Member member = {&exchange_, rank_};
        dtrain_comm_params_t params;
        DTRAIN_INIT(&params);
        params.size = size;
        params.rank = rank_;
        params.oob = &Exchange::allgather;
        params.oob_arg = &member;
        STEP(dtrain_comm_create(context_, "oob", &params, &comm_));
    }

    void use() {
        collectives();
        messages();
        queue();
        groups();
        memory();
        gradients();
        compressor();
        tables();
        STEP(dtrain_barrier(comm_, nullptr, nullptr));
    }

    void collectives() {
        for (uint64_t count : {UINT64_C(1), UINT64_C(3000), large})
            STEP(dtrain_allreduce(comm_, values_, sums_, count, DTRAIN_F32, DTRAIN_SUM, nullptr,
                                  nullptr));
        STEP(dtrain_broadcast(comm_, values_, 5000, DTRAIN_F32, 0, nullptr, nullptr));
        STEP(dtrain_allgather(comm_, values_, sums_, large / 2, DTRAIN_F32, nullptr, nullptr));
        STEP(dtrain_alltoall(comm_, values_, sums_, 700, DTRAIN_F32, nullptr, nullptr));
        dtrain_op_params_t persistent;
        DTRAIN_INIT(&persistent);
        persistent.flags = DTRAIN_OP_PERSISTENT;
        dtrain_request_t *request = nullptr;
        if (!STEP(dtrain_allreduce(comm_, values_, sums_, 4000, DTRAIN_F32, DTRAIN_SUM, &persistent,
                                   &request)))
            return;
        for (int i = 0; i < 2; i++)
            if (STEP(dtrain_request_start(&request, 1))) STEP(dtrain_request_wait(request, soon));
        dtrain_request_free(request);
    }

    void messages() {
        const int other = 1 - rank_;
        for (uint64_t count : {UINT64_C(1), large}) {
            dtrain_request_t *request = nullptr;
            if (!STEP(dtrain_recv(comm_, sums_, count, DTRAIN_F32, other, 7, nullptr, &request)))
                continue;
            STEP(dtrain_send(comm_, values_, count, DTRAIN_F32, other, 7, nullptr, nullptr));
            STEP(dtrain_request_wait(request, soon));
            dtrain_request_free(request);
        }
    }

    void queue() {
        dtrain_cq_t *cq = nullptr;
        if (!STEP(dtrain_cq_create(context_, 8, &cq))) return;
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.cq = cq;
        if (STEP(dtrain_allreduce(comm_, values_, sums_, 100, DTRAIN_F32, DTRAIN_SUM, &params,
                                  nullptr))) {
            dtrain_event_t event;
            event.status = DTRAIN_ERR_TIMEOUT;
            dtrain_cq_poll(cq, &event, 1, soon);
            STEP(event.status);
        }
        STEP(dtrain_cq_destroy(cq));
    }

    void groups() {
        dtrain_comm_t *half = nullptr, *copy = nullptr;
        if (STEP(dtrain_comm_split(comm_, rank_, 0, &half))) STEP(dtrain_comm_destroy(half));
        if (!STEP(dtrain_comm_duplicate(comm_, &copy))) return;
        STEP(dtrain_barrier(copy, nullptr, nullptr));
        dtrain_graph_params_t params;
        DTRAIN_INIT(&params);
        params.kind = DTRAIN_GRAPH_RING;
        dtrain_graph_t *graph = nullptr;
        if (STEP(dtrain_graph_create(copy, &params, &graph))) {
            STEP(dtrain_neighbor_average(graph, values_, sums_, 100, DTRAIN_F32, nullptr, nullptr));
            dtrain_graph_destroy(graph);
        }
        STEP(dtrain_comm_destroy(copy));
    }

    void memory() {
        dtrain_mem_t *memory = nullptr;
        if (!STEP(dtrain_mem_alloc(context_, 1 << 17, &memory))) return;
        auto *shared = static_cast<float *>(dtrain_mem_address(memory));
        STEP(dtrain_allreduce(comm_, shared, shared, 1 << 15, DTRAIN_F32, DTRAIN_SUM, nullptr,
                              nullptr));
        STEP(dtrain_mem_deregister(memory));
    }

    void gradients() {
        dtrain_gradients_t *gradients = nullptr;
        if (!STEP(dtrain_gradients_create(comm_, nullptr, &gradients))) return;
        dtrain_request_t *requests[2] = {};
        for (int i = 0; i < 2; i++)
            STEP(dtrain_gradients_submit(gradients, i == 0 ? "weights" : "bias", values_ + i * 1000,
                                         sums_ + i * 1000, 1000, DTRAIN_F32, DTRAIN_SUM, nullptr,
                                         &requests[i]));
        for (dtrain_request_t *request : requests) {
            if (request == nullptr) continue;
            STEP(dtrain_request_wait(request, soon));
            dtrain_request_free(request);
        }
        STEP(dtrain_gradients_destroy(gradients));
    }

    void compressor() {
        dtrain_compressor_params_t params;
        DTRAIN_INIT(&params);
        params.kind = DTRAIN_COMPRESS_TOPK;
        params.count = 1000;
        dtrain_compressor_t *compressor = nullptr;
        if (!STEP(dtrain_compressor_create(comm_, &params, &compressor))) return;
        STEP(dtrain_compressor_allreduce(compressor, values_, sums_, DTRAIN_SUM, nullptr, nullptr));
        STEP(dtrain_compressor_destroy(compressor));
    }

    void tables() {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = 5000;
        params.rule = DTRAIN_RULE_SGD;
        dtrain_table_t *tables[2] = {};
        STEP(dtrain_table_create(comm_, "dense", &params, &tables[0]));
        params.length = 0;
        params.dim = 4;
        params.rule = DTRAIN_RULE_ADAGRAD;
        if (tables[0] != nullptr) STEP(dtrain_table_create(comm_, "sparse", &params, &tables[1]));
        if (tables[0] != nullptr) {
            STEP(dtrain_table_push(tables[0], 0, 5000, values_, nullptr, nullptr));
            STEP(dtrain_table_pull(tables[0], 0, 5000, sums_, nullptr, nullptr));
        }
        if (tables[1] != nullptr) {
            static constexpr uint64_t keys[] = {3, 1, 4, 1, 5, 9, 2, 6};
            STEP(dtrain_table_push_rows(tables[1], keys, 8, values_, nullptr, nullptr));
            STEP(dtrain_table_pull_rows(tables[1], keys, 8, sums_, nullptr, nullptr));
            STEP(dtrain_barrier(comm_, nullptr, nullptr));
            if (rank_ == 0) {
                STEP(dtrain_checkpoint_save(tables, 2, 1, nullptr, nullptr));
                STEP(dtrain_checkpoint_restore(tables, 2, DTRAIN_CHECKPOINT_NEWEST, nullptr,
                                               nullptr));
            }
            STEP(dtrain_barrier(comm_, nullptr, nullptr));
        }
        for (dtrain_table_t *table : tables)
            if (table != nullptr) STEP(dtrain_table_destroy(table));
    }

    // Whatever went wrong before, this works.
    void end() {
        dtrain_status_t s = comm_ != nullptr ? dtrain_comm_destroy(comm_) : DTRAIN_OK;
        if (s == DTRAIN_OK) comm_ = nullptr;
        if (comm_ == nullptr && context_ != nullptr &&
            dtrain_context_destroy(context_) == DTRAIN_OK)
            context_ = nullptr;
        if (comm_ == nullptr && context_ == nullptr) return;
        if (before_last_try != nullptr) before_last_try();
        if (comm_ != nullptr) STEP(dtrain_comm_destroy(comm_));
        if (context_ != nullptr) STEP(dtrain_context_destroy(context_));
    }
#undef STEP

    static constexpr uint64_t large = 40'000;
    Exchange &exchange_;
    const int rank_;
    const Setting *settings_;
    dtrain_context_t *context_ = nullptr;
    dtrain_comm_t *comm_ = nullptr;
    dtrain_status_t first_ = DTRAIN_OK;
    const char *what_ = "";
    char text_[512] = "";
    float values_[large] = {}, sums_[large] = {};
};

} // namespace small_job

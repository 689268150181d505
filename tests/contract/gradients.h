// A gradient queue as an object, for tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/ranks.h"

#include <cstdint>
#include <type_traits>

namespace gradients {

struct Params : dtrain_gradients_params_t {
    Params() { DTRAIN_INIT(static_cast<dtrain_gradients_params_t *>(this)); }
};

template <class T> constexpr uint32_t dtype_of() {
    if (std::is_same_v<T, float>) return DTRAIN_F32;
    if (std::is_same_v<T, double>) return DTRAIN_F64;
    if (std::is_same_v<T, int16_t>) return DTRAIN_I16;
    return std::is_same_v<T, int32_t> ? DTRAIN_I32 : DTRAIN_I64;
}

class Queue {
  public:
    explicit Queue(dtrain_comm_t *comm, const Params &params = {}) {
        OK(dtrain_gradients_create(comm, &params, &queue_));
    }
    ~Queue() { OK(dtrain_gradients_destroy(queue_)); }
    Queue(const Queue &) = delete;
    Queue &operator=(const Queue &) = delete;
    dtrain_gradients_t *get() const { return queue_; }

    // In place, asynchronous.
    template <class T> dtrain_request_t *start(const std::string &name, T *data, size_t count) {
        dtrain_request_t *request = nullptr;
        OK(dtrain_gradients_submit(queue_, name.c_str(), data, data, count, dtype_of<T>(),
                                   DTRAIN_SUM, nullptr, &request));
        return request;
    }
    template <class T> dtrain_request_t *start(const std::string &name, std::vector<T> &data) {
        return start(name, data.data(), data.size());
    }
    // In place, blocking.
    template <class T>
    dtrain_status_t run(const std::string &name, T *data, size_t count, uint32_t op = DTRAIN_SUM) {
        return dtrain_gradients_submit(queue_, name.c_str(), data, data, count, dtype_of<T>(), op,
                                       nullptr, nullptr);
    }

  private:
    dtrain_gradients_t *queue_ = nullptr;
};

inline dtrain_status_t finish(dtrain_request_t *request) {
    dtrain_status_t s = dtrain_request_wait(request, -1);
    dtrain_request_free(request);
    return s;
}

inline dtrain_gradients_counters_t counters(const Queue &queue) {
    dtrain_gradients_counters_t now;
    DTRAIN_INIT(&now);
    OK(dtrain_gradients_stats(queue.get(), &now));
    return now;
}

} // namespace gradients

// A compressed all-reduce: a method, and the communicator on which it runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"
#include "compression/method.h"
#include "dtrain.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace dtrain::compression {

class Compressor {
  public:
    // Collective over `parent`, blocking.
    static Status create(collectives::Communicator &parent, const dtrain_compressor_params_t &given,
                         std::unique_ptr<Compressor> &out);
    // Any thread. One operation at a time, else BUSY.
    Status post(const float *send, float *recv, uint32_t op,
                const collectives::CallOptions &options);
    uint64_t count() const { return params_.count; } // elements of the vector
    Status reset();
    Status stats(dtrain_compression_stats_t &out);

  private:
    friend class Run;
    explicit Compressor(const Params &params) : params_(params) {}
    Status take();
    void give_back() { busy_.store(false, std::memory_order_release); }

    const Params params_;
    std::atomic<bool> busy_{false}; // set by an operation, or by a call of reset() or stats()
    std::unique_ptr<Method> method_;
    uint64_t operations_ = 0;
    // Declared last, so that it is destroyed first: its destructor ends the operations.
    std::unique_ptr<collectives::Communicator> comm_;
};

} // namespace dtrain::compression

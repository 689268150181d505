// The comparison of what ranks are about to do on a communicator, before an op's data travel. A
// rank in join() takes part as well (join.cpp), so ops that need all ranks fail at once.
// dtrain.horovod.tensorflow does the same in Python where it uses no op (_agreement.py).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <dtrain.h>
#include <string>
#include <vector>

namespace dtrain::tensorflow {

uint64_t hash_of(const std::string &text); // FNV-1a, 64 bits

class Agreement {
  public:
    // The signature of ranks in join(). No op has it.
    static constexpr const char *joining = "join()";

    // `signature` describes the op and what must be equal of its tensors.
    Agreement(dtrain_comm_t *comm, std::string signature);
    Agreement(const Agreement &) = delete; // calls write into it
    Agreement &operator=(const Agreement &) = delete;

    // All ranks exchange hashes; with request_p in the background. Then same() is valid.
    dtrain_status_t begin(const dtrain_op_params_t &params, dtrain_request_t **request_p);
    bool same() const { return extremes_[0] == ~extremes_[1]; }
    // Where the signatures are not the same, which all ranks see: all ranks gather them; with
    // request_p in the background. Then difference() says which ranks do what.
    dtrain_status_t begin_comparison(const dtrain_op_params_t &params,
                                     dtrain_request_t **request_p);
    std::string difference() const;

    const std::string &signature() const { return signature_; }

  private:
    dtrain_comm_t *const comm_;
    const std::string signature_;
    // Of all ranks' hashes the greatest, and the complement of the least.
    std::array<uint64_t, 2> extremes_ = {};
    std::vector<char> texts_; // the beginning of each rank's signature
};

// Why an operation cannot run while these ranks are in join().
std::string joined_text(const std::vector<int> &ranks);

} // namespace dtrain::tensorflow

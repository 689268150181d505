// Tensors that one op submits to a gradient queue, and what ranks say about them before they are
// reduced for the first time.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorflow/group.h"

namespace dtrain::tensorflow {

// Requests of a queue that use memory of the op.
class Submissions {
  public:
    Submissions(Call &call, const Use &use, const Target &target, int32_t priority);
    ~Submissions(); // waits for what is still on its way
    Submissions(const Submissions &) = delete;
    Submissions &operator=(const Submissions &) = delete;

    // `what` begins error texts. `last`: wait() follows, so the queue need not wait for more.
    bool add(std::string what, const std::string &name, const void *send, void *recv,
             uint64_t count, uint32_t dtype, uint32_t op, bool last);
    // Which of them were reduced, if anybody asks.
    bool wait(std::vector<bool> *reduced = nullptr);

  private:
    struct One {
        std::string what;
        dtrain_request_t *request;
    };
    Call &call_;
    const Use &use_;
    const Target &target_;
    const int32_t priority_;
    std::vector<One> pending_;
};

struct Claim {
    std::string name;
    std::string text; // what must be equal on all ranks
    std::string what; // begins error texts
};

// Compares the claims that are not what all ranks have agreed on before. Each of them is gathered
// by a sum to which each rank contributes its own part, under the tensor's name: so the ranks may
// run ops in any order, and ranks that have joined take part. Fails on all ranks that have come if
// one differs, or if a rank has joined that `op` needs.
bool compare_claims(Call &call, const Use &use, const Target &target, int32_t rank, int32_t size,
                    uint32_t op, const std::vector<Claim> &claims);

} // namespace dtrain::tensorflow

// What all ops on a communicator have in common: finding it, making sure that all ranks are in the
// same op with fitting tensors, posting calls, and waiting for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorflow/agreement.h"
#include "tensorflow/call.h"
#include "tensorflow/registry.h"
#include <span>
#include <string>
#include <vector>

namespace dtrain::tensorflow {

// The attributes of an op on an object of the registry.
struct Target {
    explicit Target(Construction &construction)
        : entry(entry_of(construction.text("group"))), timeout(construction.number("timeout")) {}
    Entry &entry;
    int64_t timeout; // ns; 0: option op.timeout
};

// Begins an op: fails unless the registry has an object of this kind.
bool check_object(Call &call, const Entry &entry, const Use &use, Kind kind,
                  const std::string &what);
inline bool check_kind(Call &call, const Target &target, const Use &use, Kind kind,
                       const std::string &what) {
    return check_object(call, target.entry, use, kind, what);
}

// One op on one communicator.
class Group {
  public:
    Group(Call &call, const Target &target, const Use &use, std::string what);
    ~Group(); // waits for what is still on its way: it uses TensorFlow's memory
    Group(const Group &) = delete;
    Group &operator=(const Group &) = delete;

    int rank() const { return dtrain_comm_rank(comm()); }
    int size() const { return dtrain_comm_size(comm()); }
    dtrain_comm_t *comm() const { return static_cast<dtrain_comm_t *>(use_->handle); }
    const std::string &what() const { return what_; }
    dtrain_op_params_t params() const;

    // Compares what this rank does with all others, and fails on all ranks if one differs. The
    // communicator stays usable then, and the text has both sides. `signature` describes the op and
    // what must be equal of its tensors. Blocking, before the data travel: posted with them in the
    // background, it costs more than the wait, as its progress is another thread's.
    bool agree(const std::string &signature);

    // Runs run(params, request_p), a call of the library, at once and to its end (`only`: there is
    // no other), or in the background until wait().
    template <typename Run> bool post(bool only, const Run &run) {
        dtrain_op_params_t given = params();
        dtrain_request_t *request = nullptr;
        const dtrain_status_t status = run(&given, only ? nullptr : &request);
        if (status < 0) return fail(status);
        if (request != nullptr) requests_.push_back(request);
        return true;
    }
    bool wait();
    bool fail(dtrain_status_t status);
    bool fail(Code code, const std::string &text);

  private:
    std::string begin() const; // of error texts: op, group and rank
    Call &call_;
    const Target &target_;
    const Use &use_;
    const std::string what_;
    std::vector<dtrain_request_t *> requests_;
};

// The sum of the rows that ranks have sent, each bounded; -1 if one cannot be.
int64_t sum_of_rows(std::span<const int64_t> rows);
// "float32[2,3], int32[4]": all of them if there are few, else the first ones.
std::string describe(std::span<const Tensor> tensors);
// All of them.
std::string signature_of(std::span<const Tensor> tensors);

} // namespace dtrain::tensorflow

// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/group.h"
#include <algorithm>
#include <utility>

namespace dtrain::tensorflow {

namespace {

constexpr const char *kinds[] = {"nothing", "a communicator", "a gradient queue", "a table"};

} // namespace

int64_t sum_of_rows(std::span<const int64_t> rows) {
    constexpr int64_t most = INT64_C(1) << 47;
    int64_t sum = 0;
    for (const int64_t one : rows) {
        if (one < 0 || one > most - sum) return -1;
        sum += one;
    }
    return sum;
}

std::string describe(std::span<const Tensor> tensors) {
    constexpr size_t most = 4;
    std::string text = signature_of(tensors.first(std::min(tensors.size(), most)));
    return tensors.size() > most ? text + ", ..." : text;
}

std::string signature_of(std::span<const Tensor> tensors) {
    std::string text;
    for (const Tensor &tensor : tensors) text += (text.empty() ? "" : ", ") + tensor.describe();
    return text;
}

bool check_object(Call &call, const Entry &entry, const Use &use, Kind kind,
                  const std::string &what) {
    if (use->kind == kind) return true;
    return call.fail(Code::failed_precondition,
                     "dtrain: " + what + ": \"" + entry.name() + "\" is " +
                         kinds[static_cast<size_t>(use->kind)] + " in this process, and " +
                         kinds[static_cast<size_t>(kind)] +
                         " is needed; was it closed, or never passed to dtrain.tensorflow?");
}

Group::Group(Call &call, const Target &target, const Use &use, std::string what)
    : call_(call), target_(target), use_(use), what_(std::move(what)) {}

Group::~Group() {
    for (dtrain_request_t *request : requests_) {
        (void)dtrain_request_wait(request, -1);
        dtrain_request_free(request);
    }
}

dtrain_op_params_t Group::params() const {
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.timeout_ns = target_.timeout;
    return params;
}

std::string Group::begin() const {
    return what_ + ", group \"" + target_.entry.name() + "\", rank " + std::to_string(rank()) +
           " of " + std::to_string(size());
}

bool Group::fail(dtrain_status_t status) { return call_.fail(status, begin()); }

bool Group::fail(Code code, const std::string &text) {
    return call_.fail(code, "dtrain: " + begin() + ": " + text);
}

bool Group::wait() {
    bool good = true;
    for (dtrain_request_t *request : std::exchange(requests_, {})) {
        const dtrain_status_t status = dtrain_request_wait(request, -1);
        if (status < 0 && good) good = call_.fail(status, begin(), request);
        dtrain_request_free(request);
    }
    return good;
}

bool Group::agree(const std::string &signature) {
    Agreement agreement(comm(), signature);
    dtrain_status_t status = agreement.begin(params(), nullptr);
    if (status < 0) return fail(status);
    if (agreement.same()) return true;
    // All ranks have seen the same extremes, so all of them come here.
    status = agreement.begin_comparison(params(), nullptr);
    return status < 0 ? fail(status) : fail(Code::failed_precondition, agreement.difference());
}

} // namespace dtrain::tensorflow

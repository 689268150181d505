// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/group.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace dtrain::tensorflow {

namespace {

constexpr size_t text_bytes = 512; // of a signature that is shown; the hash is of all of it

constexpr const char *kinds[] = {"nothing", "a communicator", "a gradient queue", "a table"};

std::string shown(const char *bytes) { return {bytes, strnlen(bytes, text_bytes)}; }

} // namespace

uint64_t hash_of(const std::string &text) { // FNV-1a, 64 bits
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char letter : text)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
    return hash;
}

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

bool Group::begin_agreement(const std::string &signature) {
    signature_ = signature;
    const uint64_t hash = hash_of(signature);
    extremes_ = {hash, ~hash};
    return post(false, [&](dtrain_op_params_t *params, dtrain_request_t **request_p) {
        return dtrain_allreduce(comm(), extremes_.data(), extremes_.data(), extremes_.size(),
                                DTRAIN_U64, DTRAIN_MAX, params, request_p);
    });
}

bool Group::end_agreement() {
    return extremes_[0] == ~extremes_[1] ||
           fail(Code::failed_precondition, "ranks made different calls; this rank: " + signature_);
}

bool Group::agree(const std::string &signature) {
    const uint64_t hash = hash_of(signature);
    std::array<uint64_t, 2> extremes = {hash, ~hash};
    dtrain_op_params_t given = params();
    dtrain_status_t status =
        dtrain_allreduce(comm(), extremes.data(), extremes.data(), extremes.size(), DTRAIN_U64,
                         DTRAIN_MAX, &given, nullptr);
    if (status < 0) return fail(status);
    if (extremes[0] == ~extremes[1]) return true;
    // All ranks have seen the same extremes, so all of them come here.
    std::vector<char> texts(text_bytes * static_cast<size_t>(size()));
    char *mine = texts.data() + text_bytes * static_cast<size_t>(rank());
    signature.copy(mine, text_bytes - 1);
    status = dtrain_allgather(comm(), mine, texts.data(), text_bytes, DTRAIN_U8, &given, nullptr);
    if (status < 0) return fail(status);
    for (int other = 1; other < size(); other++) {
        const char *its = texts.data() + text_bytes * static_cast<size_t>(other);
        if (std::memcmp(its, texts.data(), text_bytes) != 0)
            return fail(Code::failed_precondition,
                        "ranks made different calls: rank 0: " + shown(texts.data()) + "; rank " +
                            std::to_string(other) + ": " + shown(its));
    }
    return fail(Code::failed_precondition,
                "ranks made different calls, in tensors after the first ones: rank 0: " +
                    shown(texts.data()));
}

} // namespace dtrain::tensorflow

// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/claims.h"
#include <algorithm>
#include <cstring>
#include <utility>

namespace dtrain::tensorflow {

Submissions::Submissions(Call &call, const Use &use, const Target &target, int32_t priority)
    : call_(call), use_(use), target_(target), priority_(priority) {}

Submissions::~Submissions() {
    for (const One &one : pending_) {
        (void)dtrain_request_wait(one.request, -1);
        dtrain_request_free(one.request);
    }
}

bool Submissions::add(std::string what, const std::string &name, const void *send, void *recv,
                      uint64_t count, uint32_t dtype, uint32_t op, bool last) {
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.timeout_ns = target_.timeout;
    params.priority = priority_;
    if (last) params.flags |= DTRAIN_OP_AWAITED;
    dtrain_request_t *request = nullptr;
    const dtrain_status_t status =
        dtrain_gradients_submit(static_cast<dtrain_gradients_t *>(use_->handle), name.c_str(), send,
                                recv, count, dtype, op, &params, &request);
    if (status < 0) return call_.fail(status, what);
    pending_.push_back({std::move(what), request});
    return true;
}

bool Submissions::wait(std::vector<bool> *reduced) {
    bool good = true;
    for (const One &one : std::exchange(pending_, {})) {
        const dtrain_status_t status = dtrain_request_wait(one.request, -1);
        // UNSUPPORTED: ranks have joined, and the op needs them. As other ops are then.
        const Code code =
            status == DTRAIN_ERR_UNSUPPORTED ? Code::failed_precondition : code_of(status);
        if (status < 0 && good) good = call_.fail(code, one.what, one.request);
        if (reduced != nullptr) reduced->push_back(status >= 0);
        dtrain_request_free(one.request);
    }
    return good;
}

namespace {

constexpr size_t slot_bytes = 128; // of each rank: its text, and at the end the hash of all of it
constexpr size_t claim_text_bytes = slot_bytes - sizeof(uint64_t);

using Slots = std::vector<char>;

Slots slots_of(const Claim &claim, int32_t rank, int32_t size) {
    Slots slots(slot_bytes * static_cast<size_t>(size));
    char *mine = slots.data() + slot_bytes * static_cast<size_t>(rank);
    claim.text.copy(mine, claim_text_bytes - 1);
    const uint64_t hash = hash_of(claim.text) | 1; // not 0: this rank has come
    std::memcpy(mine + claim_text_bytes, &hash, sizeof(hash));
    return slots;
}

uint64_t hash_in(const char *slot) {
    uint64_t hash = 0;
    std::memcpy(&hash, slot + claim_text_bytes, sizeof(hash));
    return hash;
}

std::string side(const Slots &slots, size_t rank) {
    const char *text = slots.data() + rank * slot_bytes;
    return "rank " + std::to_string(rank) + " has " +
           std::string(text, strnlen(text, claim_text_bytes));
}

struct Outcome {
    std::string difference;  // "" if there is none
    std::vector<int> joined; // the ranks that have not come
};

bool takes_zeros(uint32_t op) { return op == DTRAIN_SUM || op == DTRAIN_AVG; }

Outcome outcome_of(const Slots &slots, size_t size) {
    Outcome outcome;
    size_t first = size;
    for (size_t rank = 0; rank < size; rank++) {
        const char *slot = slots.data() + rank * slot_bytes;
        if (hash_in(slot) == 0) {
            outcome.joined.push_back(static_cast<int>(rank));
        } else if (first == size) {
            first = rank;
        } else if (std::memcmp(slot, slots.data() + first * slot_bytes, slot_bytes) != 0) {
            outcome.difference = "the ranks' calls do not fit together: " + side(slots, first) +
                                 "; " + side(slots, rank);
            return outcome;
        }
    }
    return outcome;
}

} // namespace

bool compare_claims(Call &call, const Use &use, const Target &target, int32_t rank, int32_t size,
                    uint32_t op, const std::vector<Claim> &claims) {
    if (size == 1) return true;
    std::vector<const Claim *> fresh;
    for (const Claim &claim : claims)
        if (!target.entry.agreed(claim.name, hash_of(claim.text))) fresh.push_back(&claim);
    if (fresh.empty()) return true;
    std::vector<Slots> all;
    all.reserve(fresh.size());
    for (const Claim *claim : fresh) all.push_back(slots_of(*claim, rank, size));
    Submissions submissions(call, use, target, 0);
    for (size_t i = 0; i < fresh.size(); i++)
        if (!submissions.add(fresh[i]->what, fresh[i]->name, all[i].data(), all[i].data(),
                             all[i].size(), DTRAIN_U8, DTRAIN_SUM, i + 1 == fresh.size()))
            return false;
    std::vector<bool> reduced;
    bool good = submissions.wait(&reduced);
    for (size_t i = 0; i < fresh.size(); i++) {
        if (!reduced[i]) continue;
        Outcome outcome = outcome_of(all[i], static_cast<size_t>(size));
        if (outcome.difference.empty() && !outcome.joined.empty() && !takes_zeros(op))
            outcome.difference = joined_text(outcome.joined);
        if (outcome.difference.empty()) {
            if (outcome.joined.empty()) target.entry.agree(fresh[i]->name, hash_of(fresh[i]->text));
        } else if (good) {
            good = call.fail(Code::failed_precondition,
                             "dtrain: " + fresh[i]->what + ": " + outcome.difference);
        }
    }
    return good;
}

} // namespace dtrain::tensorflow

// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/agreement.h"
#include <algorithm>
#include <cstring>
#include <utility>

namespace dtrain::tensorflow {

namespace {

constexpr size_t text_bytes = 512; // of a signature that is shown; the hash is of all of it

std::string shown(const char *bytes) { return {bytes, strnlen(bytes, text_bytes)}; }

// Which rank differs from rank 0. Texts of 512 bytes each.
std::string difference_of(const std::vector<char> &texts, int size) {
    std::vector<int> joined;
    int other = 0; // the first rank that differs from rank 0
    for (int rank = size - 1; rank >= 0; rank--) {
        const char *text = texts.data() + text_bytes * static_cast<size_t>(rank);
        if (shown(text) == Agreement::joining) joined.insert(joined.begin(), rank);
        if (std::memcmp(text, texts.data(), text_bytes) != 0) other = rank;
    }
    if (!joined.empty()) return joined_text(joined);
    const std::string first = "rank 0: " + shown(texts.data());
    if (other == 0) return "ranks made different calls, in tensors after the first ones: " + first;
    return "ranks made different calls: " + first + "; rank " + std::to_string(other) + ": " +
           shown(texts.data() + text_bytes * static_cast<size_t>(other));
}

} // namespace

uint64_t hash_of(const std::string &text) { // FNV-1a, 64 bits
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char letter : text)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
    return hash;
}

std::string joined_text(const std::vector<int> &ranks) {
    constexpr size_t most = 8; // ranks that are listed
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < std::min(ranks.size(), most); i++)
        text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    if (ranks.size() > most) text += " and " + std::to_string(ranks.size() - most) + " more";
    text += ranks.size() == 1 ? " has" : " have";
    return text + " called join(); until all ranks have, only all-reduces with Sum and Average can "
                  "run. Run this operation before the first join(), or after the last";
}

Agreement::Agreement(dtrain_comm_t *comm, std::string signature)
    : comm_(comm), signature_(std::move(signature)) {
    const uint64_t hash = hash_of(signature_);
    extremes_ = {hash, ~hash};
}

dtrain_status_t Agreement::begin(const dtrain_op_params_t &params, dtrain_request_t **request_p) {
    return dtrain_allreduce(comm_, extremes_.data(), extremes_.data(), extremes_.size(), DTRAIN_U64,
                            DTRAIN_MAX, &params, request_p);
}

dtrain_status_t Agreement::begin_comparison(const dtrain_op_params_t &params,
                                            dtrain_request_t **request_p) {
    texts_.resize(text_bytes * static_cast<size_t>(dtrain_comm_size(comm_)));
    char *mine = texts_.data() + text_bytes * static_cast<size_t>(dtrain_comm_rank(comm_));
    signature_.copy(mine, text_bytes - 1);
    return dtrain_allgather(comm_, mine, texts_.data(), text_bytes, DTRAIN_U8, &params, request_p);
}

std::string Agreement::difference() const { return difference_of(texts_, dtrain_comm_size(comm_)); }

} // namespace dtrain::tensorflow

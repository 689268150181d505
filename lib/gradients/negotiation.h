// Decides which tensors are reduced next: the agreement of the ranks as a state machine without a
// network.
// SPDX-License-Identifier: Apache-2.0
//
// Follows Horovod (Sergeev and Del Balso, 2018), but instead of a coordinator and a response cache
// it has state that every rank derives equally. A cycle is one all-reduce (BAND) of a few words:
//
//   begin() -> words -> all-reduce -> reduced()
//
// with one bit per known tensor: "it waits on this rank". Tensors whose bits are set on all ranks
// are agreed on. One more bit requests a full exchange, in which every rank gets all ranks'
// reports. The exchange makes tensors known, finds differences, and serves rare events (joining,
// stalls, the end):
//
//   announce() -> report -> all-gather -> gathered()
//
// Then next_bucket() and finished() hand out the agreed tensors, in the same order on every rank.
// Not thread-safe.
#pragma once
#include "gradients/report.h"
#include "gradients/table.h"

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace dtrain::gradients {

// Equal on all ranks, except for the times.
struct Limits {
    uint64_t bucket_bytes = 8 << 20;
    uint64_t known_tensors = 4096;   // limit, unless more are waiting
    uint64_t fresh_bytes = 64 << 10; // limit of the announcements in one report
    int64_t stall_warn_ns = INT64_MAX;
    int64_t stall_fail_ns = INT64_MAX;
};

struct Submission {
    std::string name;
    TensorSpec spec; // already checked
    int32_t priority = 0;
    uint64_t id = 0; // chosen by the caller, not 0
    int64_t submitted_ns = 0;
    int64_t expires_ns = INT64_MAX;
};

struct Bucket {
    struct Item {
        uint64_t id = 0; // 0: this rank has joined and contributes zeros
        uint32_t tensor = 0;
        uint64_t bytes = 0;
    };
    std::vector<Item> items;
    uint32_t dtype = 0, op = 0;
    uint64_t bytes = 0;
    // Reduced in pieces of at most bucket_bytes, because a joined rank has only that much memory.
    bool in_pieces = false;
};

// What the caller must do.
struct Actions {
    struct Failure {
        uint64_t id;
        Status status;
        std::string text;
    };
    std::vector<Failure> failures;
    std::vector<std::string> warnings;
    // >= 0: all ranks had joined, this rank last; has_joined() is false again.
    int32_t last_joined = -1;
    int32_t closed_by = -1; // >= 0: this rank ends the queue
};

class Negotiation {
  public:
    Negotiation(int32_t rank, int32_t size, const Limits &limits);

    // ---- calls of this rank ----
    // BUSY: a tensor of this name waits; STATE: this rank has joined. Or the error with which the
    // tensor failed on ranks that submitted it earlier.
    Status submit(Submission submission);
    void join();
    void close();
    bool has_joined() const { return joins_ || joined_[size_t(rank_)]; }

    // ---- when a cycle is due ----
    bool has_waiting() const { return waiting_count_ > 0; }
    bool must_go_on() const { return !agreed_.empty() || closes_ || has_joined(); }

    // ---- a cycle ----
    Bits begin(int64_t now_ns);
    // INTERNAL: the ranks' states differ, or a peer sent invalid data.
    Status reduced(std::span<const uint64_t> words, bool &exchange, Actions &actions);
    std::vector<uint8_t> announce(int64_t now_ns);
    size_t longest_report() const; // limit of any rank's report in this exchange
    Status gathered(std::span<const std::span<const uint8_t>> reports, int64_t now_ns,
                    Actions &actions);
    // False: no tensor is agreed on. The bucket belongs to this rank until finished().
    bool next_bucket(Bucket &out);
    void finished(const Bucket &bucket, Actions &actions);

  private:
    struct Pending {
        Submission submission;
        uint64_t order = 0;          // of submission
        uint32_t tensor = no_tensor; // its number if it is known
        bool agreed = false;
        int64_t warned_ns = 0; // time of the last warning; 0: none yet
    };
    struct Claim { // what one rank says about a name in one exchange
        int32_t rank = 0;
        TensorSpec spec;
        int32_t priority = 0;
        bool expired = false;
    };
    struct Condemned {
        Status status = DTRAIN_OK;
        std::string text;
    };
    using Claims = std::vector<Claim>;

    void look_up(Pending &pending);
    void look_up_all();
    bool expired(const Pending &pending, int64_t now_ns) const;
    int64_t next_due(const Pending &pending) const;
    bool wants_exchange() const;
    Status agree(uint32_t tensor, bool partial, Actions &actions);
    void fail_tensor(const std::string &name, Status status, const std::string &text,
                     Actions &actions);
    void finish_joining(Actions &actions);

    // The full exchange.
    using Reports = std::vector<Report>;
    Status read(std::span<const std::span<const uint8_t>> bytes, Reports &out) const;
    void note_members(const Reports &reports, Actions &actions);
    Status make_known(Reports &reports, Actions &actions);
    Status settle(const std::string &name, const Claims &fresh, Reports &reports, Actions &actions);
    Status agree_on_common(Reports &reports, Actions &actions);
    void give_up_expired(Reports &reports, int64_t now_ns, Actions &actions);
    void warn(const Reports &reports, int64_t now_ns, Actions &actions);
    void remove(uint32_t tensor, Reports &reports);
    static std::string difference(const std::string &name, const Claim &a, const Claim &b);
    Claims claims_for(uint32_t tensor, const Reports &reports) const;
    std::string missing(uint32_t tensor, const Reports &reports) const;
    static constexpr size_t listed = 8; // limit of the ranks or tensors that one text lists
    // "rank 3", or "ranks 1, 3 and 5 more".
    static std::string ranks_text(const std::vector<bool> &ranks);

    const int32_t rank_, size_;
    const Limits limits_;
    Table table_;
    uint64_t cycle_ = 0;
    uint32_t exchanges_ = 0; // to check that the ranks are in step

    std::unordered_map<std::string, Pending> pending_;
    uint64_t orders_ = 0;
    size_t waiting_count_ = 0; // submissions in pending_ that are not agreed on
    size_t unknown_count_ = 0; // those of them that must be announced
    Bits waiting_;             // bits of the others
    int64_t due_ns_ = INT64_MAX;
    bool query_ = false; // something is due in this cycle
    // Tensors that failed on other ranks before this rank submitted them.
    std::unordered_map<std::string, Condemned> condemned_;

    std::vector<bool> joined_; // by rank
    int32_t joined_count_ = 0, last_joined_ = -1;
    bool joins_ = false, closes_ = false; // must be reported to the other ranks
    bool all_joined_ = false;             // ends after the agreed tensors are reduced

    std::vector<uint32_t> agreed_; // in the order of reduction
};

} // namespace dtrain::gradients

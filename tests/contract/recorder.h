// What ranks do to a table and see of it, recorded for the checker of histories.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks may be threads or processes: what they note is in shared memory, and stays there when one
// of them is killed.
#pragma once
#include "contract/ranks.h"
#include "unit/ps/history.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <sys/mman.h>

// Of a dense table that is in that mode.
inline dtrain_table_params_t params_of(const Definition &mode, uint64_t length,
                                       uint32_t dtype = DTRAIN_U64) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = dtype;
    params.length = length;
    params.consistency = mode.consistency;
    params.staleness = mode.staleness;
    params.quorum = mode.quorum;
    return params;
}

// Operations are blocking, pushes and pulls of the whole table.
class Recorder {
  public:
    Recorder(uint32_t workers, uint32_t servers, uint64_t length)
        : workers_(workers), length_(length) {
        void *memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        shared_ = static_cast<Shared *>(memory);
        shared_->until = INT64_MAX;
        for (uint32_t s = 0; s < servers; ++s) // as servers share what is a multiple of 16
            parts_.push_back({length / servers * s, length / servers});
    }
    ~Recorder() { munmap(shared_, bytes()); }
    Recorder(const Recorder &) = delete;
    Recorder &operator=(const Recorder &) = delete;

    // epoch: how often the mode was changed before.
    dtrain_status_t push(int rank, dtrain_table_t *table, uint64_t clock, uint32_t epoch = 0) {
        Note &note = begin(rank, Did::push, clock, epoch);
        std::vector<uint64_t> g(length_);
        for (uint64_t e = uint64_t(rank); e < length_; e += workers_)
            g[e] = uint64_t{1} << 4 * clock;
        return finish(note, dtrain_table_push(table, 0, length_, g.data(), nullptr, nullptr));
    }
    dtrain_status_t pull(int rank, dtrain_table_t *table, uint64_t clock, uint32_t epoch = 0) {
        Note &note = begin(rank, Did::pull, clock, epoch);
        dtrain_request_t *request = nullptr;
        OK(dtrain_table_pull(table, 0, length_, received(note), nullptr, &request));
        const dtrain_status_t status = dtrain_request_wait(request, -1);
        dtrain_event_t event = {};
        (void)dtrain_request_result(request, &event);
        note.version = event.version;
        dtrain_request_free(request);
        return finish(note, status);
    }
    dtrain_status_t clock(int rank, dtrain_table_t *table, uint64_t clock) {
        Note &note = begin(rank, Did::clock, clock, 0);
        return finish(note, dtrain_table_clock(table, nullptr, nullptr));
    }
    // It ends the clock, too.
    dtrain_status_t change(int rank, dtrain_comm_t *comm, dtrain_table_t *table, uint64_t clock,
                           const dtrain_table_params_t &mode) {
        Note &note = begin(rank, Did::clock, clock, 0);
        return finish(note, dtrain_table_set_consistency(comm, table, &mode, nullptr));
    }
    // From now on a worker may be missing.
    void leaves() {
        int64_t before = shared_->until, at = now();
        while (at < before && !shared_->until.compare_exchange_weak(before, at)) {
        }
    }
    std::string check(Definition mode) const { return check(std::vector<Epoch>{{mode}}); }
    std::string check(const std::vector<Epoch> &epochs) const {
        const bool skips = std::any_of(epochs.begin(), epochs.end(), [&](const Epoch &epoch) {
            return epoch.mode.quorum > 0 && epoch.mode.quorum < workers_;
        });
        std::list<Record> records;
        std::vector<const Record *> history;
        for (uint32_t w = 0; w < workers_; ++w)
            for (uint32_t i = 0; i < shared_->count[w]; ++i) {
                Note &note = note_at(w, i);
                Record &record = records.emplace_back();
                record.worker = w;
                record.kind = note.kind;
                record.clock = record.pull_clock = note.clock;
                if (!skips) record.step = record.pull_step = note.clock;
                record.epoch = note.epoch;
                record.range = {0, length_};
                record.received.assign(received(note), received(note) + length_);
                record.started = note.started;
                record.finished = note.finished;
                record.status = note.status;
                record.version = note.version;
                history.push_back(&record);
            }
        return HistoryChecker(history, Whose{workers_}, epochs,
                              {.until = shared_->until, .parts = parts_})
            .check();
    }

  private:
    static constexpr uint32_t most_workers = 8, most_notes = 128; // of each
    struct Note {                                                 // and what a pull has received
        Did kind;
        uint64_t clock;
        uint32_t epoch;
        std::atomic<int64_t> finished;
        int64_t started;
        dtrain_status_t status;
        uint64_t version;
    };
    struct Shared { // notes follow
        std::atomic<int64_t> until;
        std::atomic<uint32_t> count[most_workers];
    };

    static int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
    size_t note_bytes() const { return sizeof(Note) + length_ * sizeof(uint64_t); }
    size_t bytes() const { return sizeof(Shared) + workers_ * most_notes * note_bytes(); }
    Note &note_at(uint32_t worker, uint32_t index) const {
        char *notes = reinterpret_cast<char *>(shared_ + 1);
        return *reinterpret_cast<Note *>(notes + (worker * most_notes + index) * note_bytes());
    }
    static uint64_t *received(Note &note) { return reinterpret_cast<uint64_t *>(&note + 1); }

    Note &begin(int rank, Did kind, uint64_t clock, uint32_t epoch) {
        const auto worker = uint32_t(rank);
        REQUIRE(worker < most_workers && shared_->count[worker] < most_notes);
        Note &note = note_at(worker, shared_->count[worker]);
        note.kind = kind;
        note.clock = clock;
        note.epoch = epoch;
        note.finished = INT64_MAX;
        note.started = now();
        ++shared_->count[worker];
        return note;
    }
    static dtrain_status_t finish(Note &note, dtrain_status_t status) {
        note.status = status;
        note.finished = now();
        return status;
    }

    const uint32_t workers_;
    const uint64_t length_;
    Shared *shared_ = nullptr;
    std::vector<Span> parts_; // of the servers
};

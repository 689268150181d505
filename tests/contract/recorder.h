// What ranks do to a table and see of it, recorded for the checker of histories.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/ranks.h"
#include "unit/ps/history.h"

#include <chrono>
#include <list>
#include <mutex>

// Shared by the ranks. Operations are blocking, pushes and pulls of the whole table.
class Recorder {
  public:
    Recorder(uint32_t workers, uint32_t servers, uint64_t length)
        : workers_(workers), length_(length) {
        for (uint32_t s = 0; s < servers; ++s) // as servers share what is a multiple of 16
            steps_.parts.push_back({length / servers * s, length / servers});
    }

    void push(int rank, dtrain_table_t *table, uint64_t clock) {
        Record &record = begin(rank, Did::push, clock);
        for (uint64_t e = uint64_t(rank); e < length_; e += workers_)
            record.sent[e] = uint64_t{1} << 4 * clock;
        finish(record, dtrain_table_push(table, 0, length_, record.sent.data(), nullptr, nullptr));
    }
    void pull(int rank, dtrain_table_t *table, uint64_t clock) {
        Record &record = begin(rank, Did::pull, clock);
        dtrain_request_t *request = nullptr;
        OK(dtrain_table_pull(table, 0, length_, record.received.data(), nullptr, &request));
        const dtrain_status_t status = dtrain_request_wait(request, -1);
        dtrain_event_t event = {};
        OK(dtrain_request_result(request, &event));
        record.version = event.version;
        dtrain_request_free(request);
        finish(record, status);
    }
    void clock(int rank, dtrain_table_t *table, uint64_t clock) {
        Record &record = begin(rank, Did::clock, clock);
        finish(record, dtrain_table_clock(table, nullptr, nullptr));
    }
    // From now on a worker may be missing.
    void leaves() {
        std::lock_guard lock(mutex_);
        steps_.until = std::min(steps_.until, now());
    }
    std::string check(Definition mode) {
        std::vector<const Record *> history;
        for (Record &record : records_) {
            if (mode.quorum == 0) record.step = record.pull_step = record.clock;
            history.push_back(&record);
        }
        return HistoryChecker(history, workers_, mode, steps_).check();
    }

  private:
    static int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
    Record &begin(int rank, Did kind, uint64_t clock) {
        std::lock_guard lock(mutex_);
        Record &record = records_.emplace_back();
        record.worker = uint32_t(rank);
        record.kind = kind;
        record.clock = record.pull_clock = clock;
        record.range = {0, length_};
        record.sent.resize(length_);
        record.received.resize(length_);
        record.started = now();
        return record;
    }
    void finish(Record &record, dtrain_status_t status) {
        std::lock_guard lock(mutex_);
        record.finished = now();
        record.status = status;
    }

    const uint32_t workers_;
    const uint64_t length_;
    std::mutex mutex_;
    std::list<Record> records_;
    Steps steps_ = {.until = INT64_MAX};
};

// A server with a table of 8 floats, and an archive whose jobs a test ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/server/server.h"
#include "ps/storage/shard_image.h"
#include "ps/table/table_wire.h"

#include "check.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

// Jobs wait here until a test ends them.
class Shelf final : public Archive {
  public:
    dtrain::Status start(std::unique_ptr<ArchiveJob> job) override {
        jobs.push_back(std::move(job));
        return DTRAIN_OK;
    }
    std::vector<std::unique_ptr<ArchiveJob>> jobs;
};

class ArchiveRig {
  public:
    static constexpr uint64_t length = 8, table_bytes = length * sizeof(float);
    ArchiveRig(uint32_t consistency, uint32_t workers, bool with_archive = true, uint64_t limit = 0)
        : server({.workers = workers,
                  .memory_limit = limit,
                  .archive = with_archive ? &shelf : nullptr}),
          sequences(workers) {
        TableParams params;
        params.length = length;
        params.dtype = DTRAIN_F32;
        params.consistency = consistency;
        const std::string payload = encode_table(params, "t");
        for (uint32_t w = 0; w < workers; w++) {
            RequestHeader h;
            h.worker = w;
            server.on_request(w, h, payload.data(), payload.size(), out);
        }
        out.clear();
    }
    RequestHeader header(RequestKind kind, uint32_t worker, uint64_t clock = 0) {
        RequestHeader h;
        h.kind = kind;
        h.worker = worker;
        h.sequence = ++sequences[worker];
        h.clock = clock;
        h.argument = kind == RequestKind::save || kind == RequestKind::restore ? 42 : 0;
        return h;
    }
    Responses &send(const RequestHeader &h, const void *payload = nullptr, uint64_t bytes = 0) {
        out.clear();
        server.on_request(h.worker, h, payload, bytes, out);
        return out;
    }
    // Sends one that has nothing with it.
    Responses &ask(RequestKind kind, uint32_t worker) { return send(header(kind, worker)); }
    void push(uint32_t worker, uint64_t clock, float value) {
        RequestHeader h = header(RequestKind::push, worker, clock);
        h.count = 1;
        h.flags = begins_push;
        send(h, &value, sizeof value);
    }
    void end_clock(uint32_t worker, uint64_t clock, uint32_t pushes) {
        RequestHeader h = header(RequestKind::clock, worker, clock);
        h.pushes = pushes;
        send(h);
    }
    void end_job(dtrain::Status status = DTRAIN_OK, const char *text = "") {
        out.clear();
        std::unique_ptr<ArchiveJob> job = std::move(shelf.jobs.front());
        shelf.jobs.erase(shelf.jobs.begin());
        job->status = status;
        job->text = text;
        server.on_archived(std::move(job), out);
    }
    // As if read: a table full of it.
    void end_read(float value, uint64_t updates = 77) {
        ShardImage &image = *shelf.jobs.front()->image->as_shard();
        assert_int_equal(server.reserve(*shelf.jobs.front(), table_bytes), table_bytes);
        assert_true(image.allocate());
        for (uint64_t i = 0; i < length; i++) std::memcpy(image.values.at(i), &value, sizeof value);
        image.updates = updates;
        end_job();
    }
    float value(uint32_t worker, uint64_t clock = 0) {
        RequestHeader pull = header(RequestKind::pull, worker, clock);
        pull.count = 1;
        send(pull);
        float result = 0;
        expect(Reason::none);
        std::memcpy(&result, out[0].payload, sizeof result);
        return result;
    }
    float saved() const {
        float value;
        while (shelf.jobs.back()->copy()->advance(1) == GradualCopy::State::going) {
        }
        std::memcpy(&value, shelf.jobs.back()->image->as_shard()->values.at(0), sizeof value);
        return value;
    }
    void expect(Reason reason) const {
        assert_int_equal(out.size(), 1);
        assert_int_equal(out[0].header.reason, reason);
    }

    Shelf shelf;
    Server server;
    Responses out;
    std::vector<uint64_t> sequences;
};

} // namespace dtrain::ps

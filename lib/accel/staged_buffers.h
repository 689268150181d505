// Host memory in place of an operation's buffers that lie on accelerators.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/domains.h"
#include "accel/stream_work.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dtrain::accel {

// A part of a buffer, in bytes.
struct Extent {
    uint64_t offset = 0, bytes = 0;
};

// An operation runs on these copies: fetched before it, stored after it. So every transport and
// way serves accelerators, and results are the same bits as for host memory. One thread at a time.
class StagedBuffers {
  public:
    explicit StagedBuffers(Domains &domains) : domains_(domains) { domains_.hold(); }
    // Memory that a copy may still use stays until its accelerator is closed.
    ~StagedBuffers();
    StagedBuffers(const StagedBuffers &) = delete;
    StagedBuffers &operator=(const StagedBuffers &) = delete;

    // Adds a buffer of `bytes` on an accelerator, of which the operation reads `inputs` and writes
    // `outputs`. host: the memory in its place, with undefined contents.
    Status add(const Where &where, uint64_t bytes, std::vector<Extent> inputs,
               std::vector<Extent> outputs, uint8_t *&host);
    bool empty() const { return buffers_.empty(); }
    bool has_outputs() const;
    // Host memory of what the operation reads, and of what it writes.
    std::vector<std::span<uint8_t>> inputs() const { return parts(&Buffer::inputs); }
    std::vector<std::span<uint8_t>> outputs() const { return parts(&Buffer::outputs); }

    // Copies all inputs to the host.
    Status begin_fetch();
    // The same in order of a stream of the program's, which then waits until begin_store() or
    // release(), and copies all outputs.
    Status begin_on(void *stream);
    // The first part of it, which finds out whether the stream can be used.
    Status open_on(void *stream);
    // The rest of it without copies: is_fetched() says when the stream gets there, and then
    // begin_fetch() and begin_store() may follow.
    Status begin_wait();
    Status begin_copies(); // the rest of it
    bool on_stream() const { return stream_ != nullptr; }
    void release(); // lets the stream go on, if there is one
    bool is_fetched() const {
        return (stream_ == nullptr || stream_->is_ready()) && passed(&Buffer::fetched);
    }
    Status check_fetch(); // OK while the accelerators go on, and have taken the copies
    Status await_fetched(int64_t until_ns);
    // Copies all outputs back, or of each buffer only the first `most` bytes of its outputs.
    Status begin_store(uint64_t most);
    bool is_stored(); // and the stream, if there is one, has gone on
    Status check_store();
    // Once they are over: whether the copies could be submitted.
    Status fetched() const { return result(&Buffer::fetched, fetching); }
    Status stored() const { return result(&Buffer::stored, storing); }
    Status await_stored(int64_t until_ns);

  private:
    static constexpr const char *fetching = "copying the input to the host";
    static constexpr const char *storing = "copying the result from the host";
    struct Batch { // of copies
        OwnQueue *queue = nullptr;
        OwnQueue::Posted posted = {};
        bool passed() const { return queue == nullptr || queue->passed(posted); }
    };
    struct Buffer {
        Domain *domain;
        uint8_t *device;
        std::unique_ptr<PinnedBlock> block;
        std::vector<Extent> inputs, outputs;
        std::shared_ptr<const DeviceMemory> memory; // in use, if it is registered
        Batch fetched = {}, stored = {};            // the last copies of its block
    };
    bool passed(Batch Buffer::*batch) const;
    Status check(Batch Buffer::*batch, const char *what);
    Status await(Batch Buffer::*batch, const char *what, int64_t until_ns);
    Status result(Batch Buffer::*batch, const char *what) const;
    std::vector<std::span<uint8_t>> parts(std::vector<Extent> Buffer::*extents) const;
    static void add_inputs(const Buffer &buffer, std::vector<Copy> &copies);
    static void add_outputs(const Buffer &buffer, uint64_t most, std::vector<Copy> &copies);

    Domains &domains_;
    std::vector<Buffer> buffers_; // few
    std::shared_ptr<StreamWork> stream_;
    bool copies_on_stream_ = false;
};

} // namespace dtrain::accel

// All-reduce between buffers that all ranks can load and store.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/peer_memory.h"
#include "collectives/window_pipeline.h"

namespace dtrain::collectives {

// Each rank tells in its header where its buffers are. When all of them are shared, each rank sums
// its piece of all buffers and stores it into all of them: no copies, every byte is read once and
// written once. Otherwise it is a pipeline, which those begin at once whose own are not shared.
class WindowDirect final : public WindowPipeline {
  public:
    WindowDirect(engine::Request *completed, const WindowCall &call, const SharedBuffers &buffers,
                 PeerMemory &peers, engine::OperationListener &listener, bool on_stack);

  private:
    enum class Stage : uint8_t { announce, gather, map, sum, end, pipeline };
    Step move() override;
    bool lacks(uint32_t rank) const override;
    Step announce();
    Step gather();
    Step map();
    Step sum();
    Step end();
    SharedBuffers buffers_of(uint32_t rank) const;

    const SharedBuffers own_;
    PeerMemory &peers_;
    const uint64_t end_; // position after the pipeline's blocks, used or not
    Stage stage_ = Stage::announce;
    uint32_t next_ = 0;          // rank
    uint64_t begin_, piece_end_; // of what is left of the own piece, in bytes
    const void *sends_[max_window_ranks];
    void *recvs_[max_window_ranks];
};

} // namespace dtrain::collectives

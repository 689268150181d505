// Receives that are always posted on every transport, for messages from anybody.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/mesh.h"
#include "engine/tag.h"
#include "memory/registration.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace dtrain::ps {

// Under the agent's lock, its destruction too.
class Inbox {
  public:
    // take(source member, message aligned to 8 bytes, its bytes); tag: with any source.
    using Take = std::function<void(uint32_t source, const char *message, uint64_t bytes)>;
    Inbox(engine::Agent &agent, uint64_t tag, uint64_t most_bytes, Take take);

    Status open();
    void close();                       // stops; poll idle() before the destruction
    bool deaf() const { return deaf_; } // a transport could not take a receive: ...
    void retry();                       // tries again
    bool idle() const { return pending_ == 0; }

  private:
    static constexpr size_t buffers_per_device = 4;
    struct Buffer : engine::Completion {
        Inbox *inbox = nullptr;
        transport::Device *device = nullptr;
        std::unique_ptr<char[]> bytes;
        std::unique_ptr<memory::Registration> registration; // of them, and goes before them
        bool pending = false;
    };
    static void received(engine::Completion *self, const dtrain_tp_done_t &event);
    Status listen(Buffer &buffer);

    engine::Agent &agent_;
    const uint64_t tag_, most_bytes_;
    Take take_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    uint32_t pending_ = 0;
    bool closed_ = false, deaf_ = false;
};

} // namespace dtrain::ps

// Keeps receives posted on every transport, for messages with a given tag from any member.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/mesh.h"
#include "engine/tag.h"
#include "memory/registration.h"
#include "ps/node/damage.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace dtrain::ps {

// All calls need the agent's lock, also the destructor.
class Inbox {
  public:
    // take(source member, message, bytes): called for each message, which is aligned to 8 bytes.
    // tag: its source is ignored.
    using Take = std::function<void(uint32_t source, const char *message, uint64_t bytes)>;
    Inbox(engine::Agent &agent, uint64_t tag, uint64_t most_bytes, Take take);

    Status open();
    void close();                       // stops receiving; poll idle() before destruction
    bool deaf() const { return deaf_; } // a transport has refused a receive ...
    void retry();                       // ... which this posts again
    bool idle() const { return pending_ == 0; }

  private:
    static constexpr size_t buffers_per_device = 4;
    struct Buffer : engine::Completion {
        Inbox *inbox = nullptr;
        transport::Device *device = nullptr;
        std::unique_ptr<char[]> bytes;
        std::unique_ptr<memory::Registration> registration; // of bytes; destroyed before them
        bool pending = false;
    };
    static void received(engine::Completion *self, const dtrain_tp_done_t &event);
    Status listen(Buffer &buffer);

    engine::Agent &agent_;
    const uint64_t tag_, most_bytes_;
    Take take_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    Damage damage_;
    uint32_t pending_ = 0;
    bool closed_ = false, deaf_ = false;
};

} // namespace dtrain::ps

// Where a server's requests arrive and its answers leave.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/mesh.h"
#include "ps/node/header_memory.h"
#include "ps/node/inbox.h"
#include "ps/node/pack_sender.h"
#include "ps/server/server.h"

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

namespace dtrain::ps {

// Under the agent's lock, its destruction too.
class ServerPort {
  public:
    ServerPort(engine::Agent &agent, engine::Mesh &mesh, Server &server, uint32_t self,
               uint32_t workers);

    Status open(); // begins to listen on every transport
    void close();  // stops; poll idle() before the destruction
    // Sends responses(), tries again what the transport held back; returns how much it did.
    int send();
    int retry();
    Responses &responses() { return responses_; } // what the server wants sent
    bool idle() const { return pending_ == 0 && inbox_.idle() && packs_.idle(); }

  private:
    struct Answer : engine::Completion {
        ServerPort *port = nullptr;
        Response response;
        ResponseHeader *header = nullptr; // as it travels
        Charge charge;                    // of this
        std::list<Answer>::iterator place;
    };
    void take(uint32_t worker, const char *message, uint64_t bytes);
    static void answered(engine::Completion *self, const dtrain_tp_done_t &event);
    void send(Response &&response);
    bool post(Answer &answer); // false: held back
    void register_memory(const Response &response);
    bool pack(const Response &response);
    void release(Answer &answer);

    engine::Agent &agent_;
    engine::Mesh &mesh_;
    Server &server_;
    const uint32_t self_, workers_;
    Inbox inbox_;
    PackSender packs_;
    HeaderMemory headers_;
    std::list<Answer> answers_, spare_; // nodes move between them
    std::vector<Answer *> held_back_;
    Responses responses_;
    uint32_t pending_ = 0;
};

} // namespace dtrain::ps

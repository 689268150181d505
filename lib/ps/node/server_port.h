// Connects a server to the network: receives its requests and sends its answers.
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

// All calls need the agent's lock, also the destructor.
class ServerPort {
  public:
    ServerPort(engine::Agent &agent, engine::Mesh &mesh, Server &server, uint32_t self,
               uint32_t workers);

    Status open(); // begins to listen on every transport
    void close();  // stops; poll idle() before destruction
    // send() sends responses(), but for those whose values are still to come; retry() tries again
    // what the transport refused. Both return how much they did.
    int send();
    int retry();
    Responses &responses() { return responses_; } // the server's answers that are not sent yet
    bool idle() const { return pending_ == 0 && inbox_.idle() && packs_.idle(); }

  private:
    struct Answer : engine::Completion {
        ServerPort *port = nullptr;
        Response response;
        ResponseHeader *header = nullptr; // in registered memory
        Charge charge;                    // for this object
        std::list<Answer>::iterator place;
    };
    void take(uint32_t worker, const char *message, uint64_t bytes);
    void look_ahead(const char *message, uint64_t bytes); // in a pack
    static void answered(engine::Completion *self, const dtrain_tp_done_t &event);
    void send(Response &&response);
    bool post(Answer &answer); // false: the transport is busy
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

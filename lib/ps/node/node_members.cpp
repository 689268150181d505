// How a node reacts when members of the job leave or are lost.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/node.h"

#include <string>
#include <utility>

namespace dtrain::ps {

void Node::lose_server(uint32_t server, const char *text) {
    client_->on_server_lost(server, text);
    network_->drop(server);
}

void Node::member_lost(uint32_t member, Status, const char *text, bool) {
    if (client_ != nullptr && servers_.number(member) != ServerList::none &&
        member != session_->self())
        lose_server(servers_.number(member), text);
    if (server_ != nullptr && member < session_->workers())
        server_->on_worker_lost(member, port_->responses());
    check_deserted();
}

void Node::member_left(uint32_t member) {
    if (server_ != nullptr && member < session_->workers())
        server_->on_worker_left(member, port_->responses());
    if (client_ != nullptr && servers_.number(member) != ServerList::none &&
        member != session_->self()) {
        const bool dedicated = member >= session_->workers();
        const std::string text =
            (dedicated ? "server " + std::to_string(member - session_->workers())
                       : "rank " + std::to_string(member)) +
            " has left the job";
        lose_server(servers_.number(member), text.c_str());
    }
    check_deserted();
}

void Node::failed(Status, const char *text, int32_t, uint64_t) {
    for (uint32_t m = 0; m < session_->workers() + session_->servers(); m++)
        if (m != session_->self()) member_lost(m, DTRAIN_ERR_PEER, text, true);
}

// Workers move by themselves.
void Node::moved(const cluster::NextJob &next) {
    if (client_ != nullptr) return;
    moved_ = std::make_unique<cluster::NextJob>(next);
    followed_ = false;
    if (std::exchange(deserted_told_, true)) return;
    deserted_->complete({});
}

void Node::stay() {
    agent_.locked([&] {
        if (!followed_) return; // there is another one already
        moved_.reset();
        if (server_->deserted() || session_->job().status() != DTRAIN_OK) return;
        deserted_told_ = false;
        deserted_.emplace();
    });
}

void Node::check_deserted() {
    work();
    if (server_ == nullptr || deserted_told_ || !server_->deserted()) return;
    deserted_told_ = true;
    deserted_->complete({});
}

} // namespace dtrain::ps

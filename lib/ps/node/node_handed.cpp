// What this process has of tables of the job's last generation.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/node.h"
#include "ps/server/handed_part.h"

#include <algorithm>
#include <utility>

namespace dtrain::ps {

Node::Held Node::held(const std::string &name, const TableParams &wanted) {
    Held held;
    const auto count = [&](const TableParams &params, uint64_t updates, double rate) {
        TableParams had = params;
        had.placement = wanted.placement; // it moves
        held.parts++;
        held.unfit += goes_on(std::move(had), wanted) ? 0 : 1;
        held.updates = std::max(held.updates, updates);
        held.rate = std::max(held.rate, rate);
    };
    agent_.locked([&] {
        const LegacyPart *own = server_ != nullptr ? server_->inherited(name) : nullptr;
        if (own != nullptr) {
            count(own->params, own->image->updates, own->image->rate);
            held.displaced += own->server != servers_.number(session_->self());
        }
        const auto found = handed_.find(name);
        if (found == handed_.end()) return;
        for (const auto &part : found->second) count(part->params, part->updates, part->rate);
        held.displaced += uint32_t(found->second.size());
    });
    return held;
}

Node::HandedParts Node::take_held(const std::string &name) {
    HandedParts parts;
    std::optional<LegacyPart> own;
    agent_.locked([&] {
        if (auto entry = handed_.extract(name); !entry.empty()) parts = std::move(entry.mapped());
        if (server_ != nullptr) own = server_->take_inherited(name);
    });
    if (!own) return parts;
    if (std::optional<HandedPart> whole = hand_over(*own))
        parts.push_back(std::make_shared<HandedPart>(std::move(*whole)));
    return parts;
}

void Node::give_back(const std::string &name, HandedParts parts) {
    agent_.locked([&] { handed_[name] = std::move(parts); });
}

} // namespace dtrain::ps

// Reports which servers have applied a push that others refused.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/client_table.h"
#include "ps/client/row_batch.h"

namespace dtrain::ps {
namespace {

// "; in full on servers 0 and 2", or "" for none.
std::string say(const char *how, const std::vector<uint32_t> &servers) {
    if (servers.empty()) return "";
    std::string text = how;
    text += servers.size() == 1 ? " on server " : " on servers ";
    for (size_t i = 0; i < servers.size(); i++) {
        if (i > 0) text += i + 1 == servers.size() ? " and " : ", ";
        text += std::to_string(servers[i]);
    }
    return text;
}

} // namespace

void tell_who_applied(Transfer &transfer) {
    if (!has_trait(transfer.kind, Trait::pushes)) return;
    const ClientTable &table = *transfer.table;
    std::vector<bool> asked(table.channels.size());
    std::vector<uint32_t> none, some, all;
    bool lost = false; // somewhere, which the text tells already
    auto ask = [&](uint32_t server, const Range &part) {
        if (part.count == 0 || asked[server]) return;
        asked[server] = true;
        switch (table.channels[server]->take_refusal(transfer)) {
        case RequestChannel::Refused::whole: return none.push_back(server);
        case RequestChannel::Refused::in_part: return some.push_back(server);
        case RequestChannel::Refused::lost: lost = true; return;
        default: return all.push_back(server);
        }
    };
    if (transfer.rows == nullptr)
        table.partition.for_each_part(transfer.range, ask);
    else
        for (uint32_t s = 0; s < table.channels.size(); ++s) ask(s, transfer.rows->part(s));
    if (none.empty() && some.empty() && !lost) return;
    transfer.text += say("; nothing of the push was applied", none) + say("; not all of it", some) +
                     say("; its part in full", all);
}

} // namespace dtrain::ps

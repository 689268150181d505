// Passes requests and answers between a client and a server in the same process.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/local_path.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {

void LocalPath::withdraw(Outgoing &request) {
    std::erase(queue_, &request);
    std::erase(waiting_, &request);
    withdrawn_.push_back(&request);
}

int LocalPath::run(Client &client, Server &server, Responses &out, int64_t now) {
    int events = 0;
    for (;;) {
        size_t kept = 0; // swaps elements, so that `out` reuses its memory
        for (size_t i = 0; i < out.size(); ++i) {
            if (out[i].worker == worker_ && out[i].is_ready())
                events += deliver(client, out[i], now);
            else
                std::swap(out[kept++], out[i]);
        }
        out.resize(kept);
        if (!withdrawn_.empty()) {
            Outgoing *request = withdrawn_.back();
            withdrawn_.pop_back();
            client.on_withdrawn(*request, now);
        } else if (!queue_.empty()) {
            Outgoing *request = queue_.front();
            queue_.erase(queue_.begin());
            bool again = std::find(waiting_.begin(), waiting_.end(), request) != waiting_.end();
            if (!again) waiting_.push_back(request);
            server.on_request(worker_, request->header, request->payload, request->payload_bytes,
                              out);
            client.on_sent(*request, now);
        } else {
            return events;
        }
        ++events;
    }
}

bool LocalPath::deliver(Client &client, const Response &response, int64_t now) {
    auto its = [&](const Outgoing *request) {
        return request->header.table == response.header.table &&
               request->header.sequence == response.header.sequence;
    };
    auto found = std::find_if(waiting_.begin(), waiting_.end(), its);
    if (found == waiting_.end()) return false; // the answer to a repetition
    Outgoing &request = **found;
    if (response.bytes > request.answer_bytes)
        return false; // the answer to the original request, which was canceled since
    waiting_.erase(found);
    if (response.bytes > 0) std::memcpy(request.answer, response.payload, response.bytes);
    if (!client.on_response(request, response.header, response.bytes, now))
        waiting_.push_back(&request); // its answer is still to come
    return true;
}

} // namespace dtrain::ps

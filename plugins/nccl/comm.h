// One direction of a connection between two ranks: NCCL's sendComm or recvComm.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/abi.h"
#include "nccl/rail.h"

#include <deque>
#include <span>
#include <string>
#include <vector>

namespace dtrain::nccl {

struct Buffer { // of a message
    void *data = nullptr;
    size_t bytes = 0;
    int tag = 0;
    dtrain_tp_mr_t *registration = nullptr;
};

class Comm;

// What NCCL tests: a send, or up to most_receives receives.
struct Request {
    Comm *comm = nullptr;
    int count = 0;
    int posted = 0;        // the first ones; the transport had no room for the others yet
    bool given_up = false; // the transport was asked to end it
    Buffer buffers[most_receives];
    Operation *operations[most_receives] = {};
};

// Messages of one tag arrive in the order in which they were sent, and are given to the receives of
// that tag in the order in which these were posted. Any thread.
class Comm {
  public:
    enum class Direction : uint8_t { send, receive };

    // Takes over the end. `peer`: "host:pid".
    Comm(Rail &rail, Direction direction, const End &end, std::string peer);
    // Ends what is in flight, and tells the peer. This takes 50 ms at most, unless the machine does
    // not run the process.
    ~Comm();
    Comm(const Comm &) = delete;
    Comm &operator=(const Comm &) = delete;

    Rail &rail() { return rail_; }
    Direction direction() const { return direction_; }
    std::string text() const; // "receiving from host:pid by tcp:eth0"

    // One buffer for a send. `out` is nullptr if there is no room now.
    Status post(std::span<const Buffer> buffers, Request *&out);
    // Also moves bytes. bytes[i]: the length of message i; the request is gone when it is done.
    // After a failure it stays with the connection, which is to be closed.
    Status test(Request &request, bool &done, int *bytes);

  private:
    Status post_rest(Request &request);
    bool all_done(const Request &request) const;
    Status result_of(const Request &request) const;
    void give_up(Request &request);
    void say_goodbye(Rail::Lock &lock);
    Request *take();

    Rail &rail_;
    const Direction direction_;
    const End end_;
    const std::string peer_;
    std::deque<Request> requests_; // never shrinks
    std::vector<Request *> free_;
    Request *unfinished_ = nullptr; // one that is not posted completely, so no other may be
    // How often requests were tested without success since the peer's end: messages that have
    // arrived completely are still received.
    uint32_t idle_tests_ = 0;
};

} // namespace dtrain::nccl

// State that the connections of one device share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/completions.h"
#include "common/match.h"
#include "shm/poller.h"
#include "shm/sender.h"
#include "shm/window.h"

namespace dtrain::shm {

struct Shared {
    explicit Shared(const dtrain_tp_host_t *table) : host(table) {}

    // To be called after an operation that leaves work to be done or waited for: a thread that
    // sleeps on event_fd() meanwhile must check again.
    void stir() const {
        if (asleep) bell.ring(own.name);
    }

    Host host;
    Address own;
    char directory[256] = "";    // for windows; "": anonymous memory
    bool copies_directly = true; // if the kernel allows it
    tp::Distance distance = tp::Distance::measured;
    uint64_t most_eager = eager_limit;
    Doorbell bell;
    Poller poller;
    tp::Completions done;
    // Each connection has its own bound on what is kept for it (channel.h), so there is none here.
    tp::Matcher matcher{UINT64_MAX};
    tp::Pool<SendOp> ops;
    tp::List<Window, &Window::link> windows;
    bool asleep = false;    // armed
    uint32_t greetings = 0; // connections that are not up yet, and unanswered window requests
};

// Logs why a connection was lost that this side did not close. A peer that has left is not worth a
// warning; neither is a stranger, which never told its process number.
inline void log_loss(const Host &host, uint32_t pid, Status status) {
    const char *why = status == DTRAIN_ERR_PEER   ? "it left"
                      : status == DTRAIN_ERR_AUTH ? "it has another secret; set the option secret "
                                                    "to the same value in all processes"
                      : status == DTRAIN_ERR_TRANSPORT ? "it broke the protocol"
                      : status == DTRAIN_ERR_LIMIT
                          ? "this process has no file descriptors left; raise ulimit -n"
                          : "this process has no memory for it";
    bool stranger = pid == 0 && status == DTRAIN_ERR_TRANSPORT;
    host.log(stranger || status == DTRAIN_ERR_PEER ? DTRAIN_LOG_DEBUG : DTRAIN_LOG_ERROR,
             "shm: the connection to process %u is lost: %s", pid, why);
}

} // namespace dtrain::shm

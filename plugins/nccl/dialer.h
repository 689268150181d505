// A connect() that has not ended yet: it tells the listener by a hello who comes, waits for its
// welcome, and connects the device.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/comm.h"
#include "nccl/messages.h"

#include <memory>

namespace dtrain::nccl {

class Dialer {
  public:
    // `handle` is the listener's. `who`: this process, in the peer's texts.
    Dialer(Rail &control, Rail &rail, Handle handle, std::string who, int64_t deadline_ns);
    ~Dialer();
    Dialer(const Dialer &) = delete;
    Dialer &operator=(const Dialer &) = delete;

    // Does what can be done without waiting. `out` is set once the connection is ready.
    Status step(std::unique_ptr<Comm> &out);
    // From where to where, as far as is known: "by tcp:eth0, from 10.0.0.4 (eth0) to 10.0.0.5".
    std::string text();
    const Handle &handle() const { return handle_; }
    uint32_t attempt() const { return attempt_; }
    int64_t deadline_ns() const { return deadline_ns_; }

  private:
    Status call();
    Status hear();
    Status join(std::unique_ptr<Comm> &out);
    Status try_again();
    Status late();
    void hang_up();

    Rail &control_, &rail_;
    const Handle handle_;
    const std::string who_;
    const int64_t deadline_ns_;
    uint32_t attempt_ = 0;
    int64_t begun_ns_, pause_until_ns_ = 0;
    Link *control_link_ = nullptr; // to the listener's process, until the welcome
    Operation *hello_ = nullptr, *welcome_ = nullptr;
    bool welcomed_ = false;
    Welcome answer_;
    End end_; // of the device, after the welcome
    Operation *ready_ = nullptr;
};

} // namespace dtrain::nccl

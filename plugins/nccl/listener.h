// NCCL's listenComm: makes a receiving connection of each hello. One whose sender then says nothing
// keeps no other out.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/log.h"
#include "nccl/comm.h"
#include "nccl/messages.h"

#include <memory>
#include <vector>

namespace dtrain::nccl {

class Listener {
  public:
    Listener(Rail &control, Rail &rail, Log &log, std::string who, int64_t patience_ns);
    ~Listener();
    Listener(const Listener &) = delete;
    Listener &operator=(const Listener &) = delete;

    // Starts to listen; the handle leads here.
    Status open(void *handle);
    // Does what can be done without waiting. `out` is set once a connection is ready. A side that
    // fails while it connects is logged, and the next one is waited for. Any thread.
    Status step(std::unique_ptr<Comm> &out);
    Rail &rail() { return rail_; }

  private:
    struct Guest { // a side that is being connected
        std::string who;
        End end;                      // of the device
        Link *control_link = nullptr; // for the welcome
        Operation *welcome = nullptr, *ready = nullptr;
    };
    static constexpr size_t most_guests = 8; // then the one that came first has to go

    Status await_hello();
    Status take_hello(Hello &hello, bool &taken);
    void answer(const Hello &hello);
    Status finish(std::unique_ptr<Comm> &out);
    void look(Guest &guest, bool &gone, bool &ready);
    void drop(size_t guest);

    std::mutex mutex_; // taken before those of rails
    Rail &control_, &rail_;
    Log &log_;
    const std::string who_;
    const int64_t patience_ns_;
    int64_t deadline_ns_ = 0; // of the connection that step() waits for; 0: none yet
    uint32_t number_ = 0;
    Operation *hello_ = nullptr;
    std::vector<Guest> guests_; // as they came
};

} // namespace dtrain::nccl

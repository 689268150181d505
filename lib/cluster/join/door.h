// Where processes that come while an elastic job runs find its coordinator: the job's rendezvous,
// kept open, or opened again by another process.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/join/rendezvous.h"

namespace dtrain::cluster {

class Door {
  public:
    // where: its door, or else its rendezvous. taken: a socket that listens there
    // already, or nothing. DTRAIN_ERR_UNSUPPORTED for a rendezvous that nobody can find later.
    Status open(const Identity &where, const std::string &listen_address, Fd taken,
                int64_t deadline_ns);
    void close();
    Fd release(); // the socket, for another process's or the next generation's door; keeps the file

    bool is_open() const { return bool(listener_); }
    int fd() const { return listener_.get(); }
    uint16_t meeting() const { return rendezvous_.meeting(); }

  private:
    Rendezvous rendezvous_;
    Fd listener_;
};

} // namespace dtrain::cluster

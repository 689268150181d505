// Where worker 0 listens: how it tells, and how the others learn it.
// SPDX-License-Identifier: Apache-2.0
//
//   tcp://host:port   worker 0 listens there. A numeric address of this machine, and localhost, are
//                     bound as they are; for a name, which may mean something else to the others
//                     (a service, Debian's 127.0.1.1, ::1), it listens on all interfaces.
//   file:///path      worker 0 writes its addresses there. A file from an earlier job does no harm:
//                     nobody listens at its addresses, and it is read again until somebody does.
//   oob               the program's all-gather; called once, from open()
//
// For the last two it listens on all interfaces, or at option listen.address. The others try all
// addresses that it may have.
//
// Where torch's MASTER_PORT is all that is known, that port is taken, and the next ones may be
// those of other jobs: worker 0 listens at the first that is free of ports_beside(), and the others
// try them in turn. Should two jobs come to the same one, they are told apart by meeting().
#pragma once
#include "cluster/host/identity.h"
#include "cluster/host/place.h"
#include "cluster/host/socket.h"

#include <array>

namespace dtrain::cluster {

// The numeric address by which the others of a job with this rendezvous most likely reach this
// host; "" when only processes of this host can. Fails only as resolve() does by its deadline:
// names that do not exist, joining will tell of.
Status own_address(const std::string &rendezvous, int64_t deadline_ns, std::string &out);

// Below the ports that systems give to outgoing connections, and far from MASTER_PORT.
std::array<uint16_t, 4> ports_beside(int32_t master_port);

class Rendezvous {
  public:
    // DTRAIN_ERR_INVALID on a malformed one. listen_address: the option, or "".
    Status parse(const Identity &identity, const std::string &listen_address,
                 dtrain_oob_allgather_fn oob, void *oob_arg);
    // Worker 0: opens `listener` and makes its address known. Others: calls oob when that is the
    // way.
    Status open(int64_t deadline_ns, Fd &listener);
    // Where worker 0 may listen, the best first; DTRAIN_ERR_NOT_FOUND: not known yet (text says
    // why).
    Status find(int64_t deadline_ns, std::vector<SocketAddress> &addresses);
    // Of the job, once it has opened, or found something: see wire::Handshake.
    uint16_t meeting() const { return meeting_; }
    // Only processes of this host can come; of who has found where.
    bool is_local() const;
    void close();                                            // worker 0: takes the file away
    bool single() const { return identity_.members() == 1; } // nothing to do

  private:
    enum class Kind { tcp, file, oob };
    Status listen(int64_t deadline_ns, Fd &listener);
    Status listen_tcp(int64_t deadline_ns, Fd &listener) const;
    Status listen_tcp(const std::string &port, int64_t deadline_ns, Fd &listener) const;
    Status publish(const Fd &listener);
    Status write_file(const std::string &place);
    Status read_file(std::string &place);
    Status gather(const std::string &place);
    Status find_tcp(int64_t deadline_ns, std::vector<SocketAddress> &addresses);

    Identity identity_;
    Kind kind_ = Kind::tcp;
    Endpoint endpoint_;              // tcp
    std::vector<std::string> ports_; // tcp: which take turns
    Unshared given_;                 // the launcher's listener
    std::string path_;               // file
    std::string written_;            // the file's content, when this process wrote it
    std::string listen_host_;        // file, oob: the option, or ""
    std::string place_;              // oob: what came out
    uint16_t meeting_ = 0;
    size_t turn_ = 0;
    dtrain_oob_allgather_fn oob_ = nullptr;
    void *oob_arg_ = nullptr;
    std::vector<SocketAddress> resolved_; // tcp: kept, since a resolver may be slow
};

} // namespace dtrain::cluster

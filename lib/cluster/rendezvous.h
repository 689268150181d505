// Where worker 0 listens: how it tells, and how the others learn it.
// SPDX-License-Identifier: Apache-2.0
//
//   tcp://host:port   worker 0 listens there. A numeric address is bound as it is. A name that
//   means
//                     no address of this machine (a service's), or only loopback without being
//                     called localhost (Debian's 127.0.1.1), makes it listen on all interfaces.
//   file:///path      worker 0 writes its address there. A file from an earlier job does no harm:
//   nobody
//                     listens at its address, and it is read again until somebody does.
//   oob               the program's all-gather; called once, from open()
#pragma once
#include "cluster/identity.h"
#include "cluster/socket.h"

namespace dtrain::cluster {

// The numeric address by which the others of a job with this rendezvous reach this host; "" when
// only processes of this host can, or it cannot be known (file, oob: option listen.address tells).
std::string own_address(const std::string &rendezvous);

class Rendezvous {
  public:
    // DTRAIN_ERR_INVALID on a malformed one. listen_address: the option, or "".
    Status parse(const Identity &identity, const std::string &listen_address,
                 dtrain_oob_allgather_fn oob, void *oob_arg);
    // Worker 0: opens `listener` and makes its address known. Others: calls oob when that is the
    // way.
    Status open(Fd &listener);
    // Where worker 0 listens; DTRAIN_ERR_NOT_FOUND: not known yet (text says why).
    Status find(std::vector<SocketAddress> &addresses);
    void close();                                            // worker 0: takes the file away
    bool single() const { return identity_.members() == 1; } // nothing to do

  private:
    enum class Kind { tcp, file, oob };
    Status listen(Fd &listener) const;
    Status listen_tcp(Fd &listener) const;
    Status publish(const std::string &address);
    Status write_file(const std::string &address);
    Status read_file(std::string &address) const;
    Status gather(const std::string &address);

    Identity identity_;
    Kind kind_ = Kind::tcp;
    Endpoint endpoint_;       // tcp
    std::string path_;        // file
    std::string written_;     // the file's content, when this process wrote it
    std::string listen_host_; // file, oob
    std::string address_;     // oob: what came out
    dtrain_oob_allgather_fn oob_ = nullptr;
    void *oob_arg_ = nullptr;
    std::vector<SocketAddress> resolved_; // tcp: kept, since a resolver may be slow
};

} // namespace dtrain::cluster

// Where worker 0 listens: how it announces that, and how the others learn it.
// SPDX-License-Identifier: Apache-2.0
//
//   tcp://host:port   worker 0 listens there. A numeric address of this machine, and localhost, are
//                     bound as they are; for a name, which may mean something else to the others
//                     (a service, Debian's 127.0.1.1, ::1), it listens on all interfaces.
//   file:///path      worker 0 writes its addresses there. A file from an earlier job does no harm:
//                     no process listens at its addresses, and it is read again until one does.
//                     The last number in it says how many generations of the job have formed, 0
//                     while the first one gathers; launchers of elastic jobs read it. They
//                     write "dtrain-rendezvous over" there once the job has ended: a newcomer that
//                     still waits gets DTRAIN_ERR_ABORTED at once.
//   oob               the program's all-gather; called once, from open()
//   pmi, pmix         the launcher's key-value store (exchange.h); called once, from open()
//   at:place          only within the library: worker 0 listens at this place (place.h) already
//
// For the last ones it listens on all interfaces, or at option listen.address. The others try all
// addresses that it may have.
//
// If only the host is known, and a seed for the port (torch's MASTER_PORT, which torch uses itself;
// the number of Slurm's job), worker 0 listens at the first free port of ports_from() (ports.h),
// and the others try these in turn. If two jobs use the same one, meeting() tells them apart.
#pragma once
#include "cluster/exchange/exchange.h"
#include "cluster/host/identity.h"
#include "cluster/host/place.h"
#include "cluster/host/socket.h"

namespace dtrain::cluster {

// The numeric address by which the other members of a job with this rendezvous most likely reach
// this host; "" if only processes of this host can. Fails only like resolve() at its deadline:
// joining reports names that do not exist.
Status own_address(const std::string &rendezvous, int64_t deadline_ns, std::string &out);

class Rendezvous {
  public:
    // DTRAIN_ERR_INVALID if it is malformed. listen_address: the option's value, or "".
    Status parse(const Identity &identity, const std::string &listen_address,
                 dtrain_oob_allgather_fn oob, void *oob_arg);
    // Worker 0: opens `listener`, unless it is open already, and makes its address known. Others:
    // call oob if it is the rendezvous. formed: how many generations of the job have formed.
    Status open(int64_t deadline_ns, Fd &listener, uint32_t formed = 0);
    // Worker 0: the job has formed for the first time.
    Status note_formed();
    // Where worker 0 may listen, the best first. DTRAIN_ERR_NOT_FOUND: not known yet (the text says
    // why).
    Status find(int64_t deadline_ns, std::vector<SocketAddress> &addresses);
    // Identifies the job, after open() or a successful find(): see wire::Handshake.
    uint16_t meeting() const { return meeting_; }
    // Whether only processes of this host can connect, judged by the place that was found.
    bool is_local() const;
    void close();                                             // worker 0: removes the file
    bool single() const { return !identity_.meets_others(); } // no rendezvous is needed
    // Whether processes that come later can find the job here, too.
    bool takes_newcomers() const { return kind_ == Kind::tcp || kind_ == Kind::file; }

  private:
    enum class Kind { tcp, file, oob, exchange, place };
    Status listen(int64_t deadline_ns, Fd &listener);
    Status listen_tcp(int64_t deadline_ns, Fd &listener) const;
    Status listen_tcp(const std::string &port, int64_t deadline_ns, Fd &listener) const;
    Status publish(const Fd &listener, uint32_t formed, int64_t deadline_ns);
    Status write_file(uint32_t formed);
    std::string unique_path() const;
    // Whether what is there is what this process has written.
    bool has_written(const std::string &path) const;
    Status read_file(std::string &place);
    bool passes_on() const { return kind_ == Kind::oob || kind_ == Kind::exchange; }
    // Worker 0 tells the others its place, or an error; oob or exchange.
    Status pass_on(const std::string &place, int64_t deadline_ns);
    Status gather(std::string &text);
    Status find_tcp(int64_t deadline_ns, std::vector<SocketAddress> &addresses);

    Identity identity_;
    Kind kind_ = Kind::tcp;
    Endpoint endpoint_;              // tcp
    std::vector<std::string> ports_; // tcp: tried in turn
    Unshared given_;                 // the listener from the launcher
    std::string path_;               // file
    std::string announced_;          // file: what this process says in it, but for the last number
    std::string written_;            // the file's content, if this process wrote it
    std::string listen_host_;        // all but tcp: the option's value, or ""
    std::string place_;              // oob, exchange: what worker 0 has passed on; place: given
    const ExchangeKind *exchange_ = nullptr;
    uint16_t meeting_ = 0;
    size_t turn_ = 0;
    dtrain_oob_allgather_fn oob_ = nullptr;
    void *oob_arg_ = nullptr;
    std::vector<SocketAddress> resolved_; // tcp: kept, since a resolver may be slow
};

} // namespace dtrain::cluster

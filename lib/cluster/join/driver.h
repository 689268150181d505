// Drives a Node with sockets: epoll, the listener, dialing, deadlines.
// SPDX-License-Identifier: Apache-2.0
//
// One caller at a time. It never blocks, except while joining, to resolve a name.
#pragma once
#include "base/log.h"
#include "cluster/control/node.h"
#include "cluster/join/connection.h"
#include "cluster/join/dialling.h"
#include "cluster/join/door.h"
#include "cluster/join/rendezvous.h"
#include "cluster/join/strangers.h"

#include <deque>
#include <map>
#include <memory>

namespace dtrain::cluster {

class Driver {
  public:
    Driver(Settings settings, wire::Credentials own, std::string listen_address, Log *log);

    // Begins to join. listener: of worker 0, if it listens already.
    Status open(Rendezvous rendezvous, Fd listener, int64_t now);
    int event_fd() const { return epoll_.get(); }
    int64_t next_deadline() const;
    void work(int64_t now);
    void wake(); // makes event_fd() readable until the next work()

    // The reports for the program, in order.
    std::vector<wire::Message> take_reports() { return std::exchange(reports_, {}); }
    bool has_reports() const { return !reports_.empty(); }
    Status post(wire::Message message, int64_t now);
    Status ask(wire::GroupRequest request, uint32_t &serial, int64_t now);
    void withdraw(uint32_t serial) { node_.withdraw(serial); }
    Status reform(wire::ReformRequest request, uint32_t &attempt, int64_t now);
    Status listen(Fd &out); // at another port of the addresses at which this process listens
    // The same socket as its listener's, which stays open with this one; nothing if it has none.
    Fd share_listener() const;
    // Lets newcomers find this process at the elastic job's rendezvous (door.h). It may still be
    // another process's: it is tried for a while.
    void open_door(Fd taken, int64_t now);
    // Gives the socket up, if this process has it.
    Fd release_door();
    void drop_all(); // closes everything without telling peers
    // Closes everything; waits briefly for the peers to close it, too. moved: for the next
    // generation of an elastic job.
    void leave(bool moved, int64_t now);
    const Membership &membership() const { return node_.membership(); }
    const Pace &pace() const { return node_.pace(); }
    // To the farthest member of those to which this one has had a connection; 0: unknown.
    int64_t round_trip_ns() const { return round_trip_ns_; }

  private:
    using Connections = std::map<Link, std::unique_ptr<Connection>>;

    void run(Actions actions, int64_t now); // the actions, and those of the events that they cause
    void perform(Action &action, int64_t now);
    void formed();
    void dial(const Dial &dial, int64_t now);
    Status find(const std::string &address, std::vector<SocketAddress> &out);
    void advance(Link dial, int64_t now);
    void dial_again(Link attempt, Connection &connection, int64_t now);
    Link settle(Link attempt);
    void send(const Send &send, int64_t now);
    void close(Link link, int64_t now);

    void try_door(int64_t now);
    void accept_some(int listener, uint16_t meeting, int64_t now);
    void heed_listeners(bool heed);
    void accept_later(int64_t now);
    Fd accept_one(int listener);
    void take_in(Fd fd, uint16_t meeting, int64_t now);
    void watch_connection(Link link, int64_t now);
    void remove(Link link);
    void update_interest(Link link, const Connection &connection);
    void ready(Link link, uint32_t events, int64_t now);
    Link opened(Link link, Connection &connection); // returns the connection's number from now on
    void broken(Link link, Status status, int64_t now);
    void expire(int64_t now);
    void wind_up(int64_t until);
    Status listen_beside(const Connection &connection);

    const wire::Credentials own_;
    std::string listen_address_;
    int32_t self_;
    int64_t join_deadline_; // bounds the resolving of names, too
    const Identity identity_;
    Log *log_;
    Node node_;
    Rendezvous rendezvous_;
    Fd epoll_, wake_, reserve_, listener_;
    Door door_;
    int64_t door_at_ = INT64_MAX, door_until_ = 0; // when to try to open it again, and until when
    Connections connections_;
    std::map<Link, Dialling> dials_; // their attempts are connections with their own numbers
    Strangers strangers_;            // the connections that were accepted and handshake
    Link next_accepted_ = 2;
    int64_t round_trip_ns_ = 0;
    int64_t accept_at_ = INT64_MAX; // in a crowd: until then, the listeners wake nobody
    std::shared_ptr<const wire::Message> encoded_; // the message encoded in frame_, during run()
    std::vector<uint8_t> frame_;
    std::deque<Event> events_;
    std::vector<wire::Message> reports_;
};

} // namespace dtrain::cluster

// The wire over libfabric: packets are untagged messages into buffers that take many of them, bulk
// messages are writes into the memory that the receiver has granted.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/id_table.h"
#include "common/list.h"
#include "common/pool.h"
#include "ofi/packet.h"
#include "ofi/registration_cache.h"

#include <vector>

namespace dtrain::ofi {

using rdm::Operation;
using rdm::Sent;

// An address in libfabric's table. Some providers treat all entries of one address as one.
struct Peer {
    fi_addr_t number = FI_ADDR_UNSPEC;
    uint32_t links = 0;
    size_t length = 0;
    // Zero at the end, for addresses that are texts.
    uint8_t address[rdm::max_fabric_address + 1] = {};
    tp::Link<Peer> order;
};

struct Link : rdm::Link {
    Peer *peer = nullptr;
    rdm::Fault broken;
    bool told = false;      // the protocol was told
    bool given_up = false;  // by the protocol; it is deleted with its last operation in progress
    uint32_t under_way = 0; // payloads and chunks whose memory libfabric holds
    tp::Link<Link> link;
};

struct Remote : rdm::Remote { // announced by the peer
    BulkName bulk;
};

// The context that libfabric returns with a completion. It uses the first bytes itself.
struct Context {
    enum class Kind : uint8_t { buffer, packet, payload, chunk };
    fi_context2 libfabric;
    Kind kind{};
    ofi::Link *link = nullptr;
};

struct Buffer : Context { // receives many packets
    std::unique_ptr<uint8_t[]> bytes;
    std::unique_ptr<Registration> registration;
    size_t arrived = 0; // bytes of its packets
    size_t all = 0;     // of all that have begun to arrive, once it is used up
    bool used_up = false;
};

struct Packet : Context {         // being sent
    Operation *payload = nullptr; // sent without being copied
    void *descriptor = nullptr;
    uint8_t *bytes = nullptr; // packet_size_ bytes
    std::unique_ptr<uint8_t[]>
        copy; // sent instead, if there are more pieces than libfabric accepts
};

// Memory being moved: a bulk message that was granted a destination, a put, or a get.
struct Move {
    enum class Kind : uint8_t { bulk, put, get };
    Kind kind{};
    bool granted = false, failed = false;
    bool waits = false;             // until there is room in libfabric's queue
    Operation *operation = nullptr; // nullptr: the link was removed before the last chunk completed
    ofi::Link *link = nullptr;
    BulkName name;
    Grant grant;
    uint32_t target = 0;                                // the current target,
    uint64_t offset = 0;                                // and the bytes of it that are done
    uint32_t chunks = 0;                                // that libfabric holds
    RegistrationCache::Held registrations[tp::max_iov]; // of pieces that were not registered
    tp::Link<Move> waiting;
};

// A bulk message being received.
struct Transfer {
    Operation *operation = nullptr;
    ofi::Link *link = nullptr;
    uint32_t id = 0;
    RegistrationCache::Held registrations[tp::max_iov]; // of pieces that were not registered,
    Registration *given[tp::max_iov] = {};              // and of those that were
};

struct Chunk : Context { // one write or read of a move
    Move *move = nullptr;
    tp::Link<Chunk> order;
};

extern const uint32_t rkey_length;

class Wire final : public rdm::Wire {
  public:
    Wire(const tp::Host &host, rdm::Protocol *protocol) : host_(host), protocol_(*protocol) {}
    ~Wire() override;

    dtrain_status_t open(const char *device) override;
    const rdm::WireAttr &attr() const override { return attr_; }
    size_t address(uint8_t out[rdm::max_fabric_address]) override;
    std::string route(const uint8_t *address, size_t len) override;
    int event_fd() const override { return fabric_.events.get(); }
    bool arm() override;
    bool progress() override;
    bool quiet() override;
    rdm::Link *link(const uint8_t *address, size_t len) override;
    void unlink(rdm::Link *link) override;
    Sent send(rdm::Link *link, const void *head, size_t len, Operation *payload) override;
    Sent announce(rdm::Link *link, const void *head, size_t len, Operation *bulk) override;
    bool withdraw(Operation *bulk) override;
    void break_off(Operation *place) override;
    void fetch(rdm::Link *link, rdm::Remote *remote, Operation *place) override;
    void drop(rdm::Link *link, rdm::Remote *remote) override;
    dtrain_status_t reg(const dtrain_mem_params_t &mem, dtrain_tp_mr_t **mr_p) override;
    void dereg(dtrain_tp_mr_t *mr) override;
    dtrain_status_t rkey(dtrain_tp_mr_t *mr, void *buf, size_t len) override;
    rdm::RegistrationCounts registrations() const override;
    Sent put(rdm::Link *link, Operation *from, uint64_t address, const void *rkey) override;
    Sent get(rdm::Link *link, Operation *into, uint64_t address, const void *rkey) override;

  private:
    struct Answer { // to a peer; waits for room in libfabric's queue
        ofi::Link *link = nullptr;
        size_t length = 0;
        Grant grant; // or a shorter packet
        tp::Link<Answer> order;
    };

    // wire.cpp
    dtrain_status_t open_buffers();
    bool make_buffer(int *error);
    bool post_buffers();
    bool post(Buffer *buffer);

    // link.cpp
    Peer *find_peer(const uint8_t *address, size_t len);
    void release(Peer *peer);
    void lend(ofi::Link *link);
    void back(ofi::Link *link);

    // packets.cpp
    Sent send_packet(ofi::Link *link, const void *head, size_t len, Operation *payload);
    Sent send_payload(ofi::Link *link, Packet *packet, size_t len, Operation *payload);
    Sent refused(ofi::Link *link, int error);
    void answer(ofi::Link *link, const void *bytes, size_t len);
    bool flush_answers();

    // progress.cpp
    bool receive();
    bool complete();
    void on_received(const fi_cq_data_entry &entry);
    void on_packet_of(Buffer &buffer, const fi_cq_data_entry &entry);
    void on_packet(const uint8_t *bytes, size_t len);
    void on_completed(Context *context, int error);
    void on_error(fid_cq *queue);
    void break_link(ofi::Link *link, int error);
    void break_link(ofi::Link *link, const rdm::Fault &fault);
    void tell_broken();

    // bulk.cpp
    void on_announce(const uint8_t *bytes, size_t len);
    void on_grant(const uint8_t *bytes, size_t len);
    void on_failed(const uint8_t *bytes, size_t len);
    void on_immediate(uint64_t immediate);
    bool place(Transfer *transfer, Grant *grant);
    void revoke(Transfer &transfer);
    void end(Transfer *transfer, bool ok);
    void end_all(ofi::Link *link);
    void fail_later(Operation *fetched);
    void tell_failed();

    // move.cpp
    Registration *registered(const tp::IovCursor &memory, const uint8_t *piece, uint64_t len) const;
    Move *make_move(Move::Kind kind, ofi::Link *link, Operation *operation);
    Sent start_remote(Move::Kind kind, rdm::Link *link, Operation *operation, uint64_t address,
                      const void *rkey);
    void hand_over_chunks(Move *move);
    bool advance(Move *move);
    bool start_chunk(Move *move);
    int hand_over(Move *move, Chunk *chunk, void *piece, uint64_t len, void *descriptor, bool last);
    void unregistered(Operation *operation, uint64_t len, int error);
    void *describe(Move *move, uint8_t *piece, uint64_t len, int *error);
    bool wait(Move *move);
    bool fail(Move *move, int error);
    void on_chunk(Chunk *chunk, int error);
    Move *take_back(Chunk *chunk);
    void end(Move *move, bool ok);

    const tp::Host &host_;
    rdm::Protocol &protocol_;
    rdm::WireAttr attr_;
    Fabric fabric_;
    tp::Secrets secrets_{host_}; // for message names and memory keys
    size_t inject_limit_ = 0;
    size_t packet_size_ = 0; // of packets that are copied; a fixed size, so that no end is searched
    uint64_t chunk_limit_ = 0;
    bool local_ = false; // memory for sending must be registered
    bool ends_ = false;  // this process may end: sends must be known to have left it

    std::vector<std::unique_ptr<Buffer>> buffers_;
    std::vector<Buffer *> spare_buffers_;
    uint32_t posted_ = 0;       // those that libfabric has
    bool counts_bytes_ = false; // packets of a buffer that is used up may still be arriving
    std::unique_ptr<uint8_t[]> packet_bytes_;
    std::unique_ptr<Registration> packet_registration_;
    std::vector<Packet> packets_;
    std::vector<Packet *> free_packets_;
    uint32_t unsent_ = 0; // packets that libfabric holds
    tp::List<Answer, &Answer::order> answers_;
    tp::Pool<Answer> answer_pool_;

    rdm::Registrations registered_;                     // registered by the caller
    RegistrationCache cache_{host_, secrets_, fabric_}; // for all other memory
    tp::List<Peer, &Peer::order> peers_;
    tp::List<ofi::Link, &ofi::Link::link> links_;
    tp::List<ofi::Link, &ofi::Link::link> given_up_; // libfabric still holds something of them
    tp::IdTable<Move> moves_;
    tp::IdTable<Transfer> transfers_;
    tp::List<Move, &Move::waiting> waiting_;
    tp::List<Chunk, &Chunk::order> chunks_; // that libfabric holds
    tp::Pool<Move> move_pool_;
    tp::Pool<Transfer> transfer_pool_;
    tp::Pool<Chunk> chunk_pool_;
    Operation *failed_ = nullptr; // fetches that did not begin, chained by Operation::wire
    uint32_t under_way_ = 0;      // operations that libfabric has to complete, of all links
    uint32_t idle_ = 0;           // calls of progress() without any
    uint32_t told_ = 0;           // calls of progress() that took some back
    bool broken_links_ = false;
    bool broken_ = false;
};

} // namespace dtrain::ofi

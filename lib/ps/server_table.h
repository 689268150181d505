// One table as its server sees it: who made it, what waits, what was answered.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/answered.h"
#include "ps/item.h"
#include "ps/shard.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

// What a server wants sent. payload belongs to a shard; keep `hold` until it has been sent.
struct Response {
    uint32_t worker = 0;
    ResponseHeader header;
    const void *payload = nullptr;
    uint64_t bytes = 0;
    std::shared_ptr<const Buffer> hold;
};
using Responses = std::vector<Response>; // reused from step to step, so that steps allocate nothing

class ServerTable {
  public:
    struct Identity {
        uint32_t table = 0, server = 0, workers = 0;
        std::string name;
        TableParams params;
    };
    ServerTable(const Identity &identity, const Partition &partition, std::unique_ptr<Shard> shard);
    ~ServerTable();

    // A create request of that worker. All are answered when the last worker that is present has
    // asked, or as soon as it is clear that the table cannot be made.
    void join(const RequestHeader &header, const std::string &name, const TableParams &params,
              Responses &out);
    // Every create request, past and to come, is answered with this; the shard is given up.
    void refuse(Reason reason, uint64_t number0, uint64_t number1, Responses &out);
    // Any other request but destroy, checked by check_request().
    void request(const RequestHeader &header, const void *payload, uint64_t bytes, Responses &out);
    void leave(uint32_t worker, Responses &out); // destroyed its handle, or left the job
    void lose(uint32_t worker, Responses &out);
    bool unused() const { return present_ == 0; } // all have left or were lost
    bool member(uint32_t worker) const { return members_[worker].present; }
    uint64_t bytes() const { return bytes_; } // charged to the server's limit

  private:
    struct Member {
        bool present = true, joined = false;
        std::unique_ptr<Answered> answered; // from its first request on
    };
    struct Answer {
        Reason reason = Reason::none;
        uint64_t numbers[2] = {0, 0};
    };

    void check_joined(Responses &out);
    void remove(uint32_t worker);
    Answer check_range(const RequestHeader &header, uint64_t bytes) const;
    void start(const RequestHeader &header, const void *payload, Answered::Entry &entry,
               Responses &out);
    void push(const RequestHeader &header, const void *payload, Answered::Entry &entry,
              Responses &out);
    void pull(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void set_state(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                   Responses &out);
    void set_rate(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    Answer attach(const RequestHeader &header, Response &response);
    void clock(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void cancel(const RequestHeader &header, Answered::Entry &entry, Responses &out);
    void hold(const RequestHeader &header, Answered::Entry &entry);
    void settle(Responses &out); // after a worker's clock has moved
    void release(Responses &out);
    Answer refusal(Verdict verdict, const RequestHeader &header) const;
    void finish(const RequestHeader &header, Answered::Entry &entry, const Answer &answer,
                Responses &out);
    void respond(const RequestHeader &header, const Answer &answer, Responses &out);

    Identity identity_;
    Partition partition_;
    uint64_t bytes_;
    std::unique_ptr<Shard> shard_; // nullptr: the table could not be made
    Answer refused_;               // why
    Clocks clocks_;
    std::vector<Member> members_;
    uint32_t present_, joined_ = 0;            // joined: of those present
    std::vector<RequestHeader> joining_;       // create requests to answer
    std::vector<RequestHeader> parked_, held_; // at most request_window per worker in both
};

} // namespace dtrain::ps

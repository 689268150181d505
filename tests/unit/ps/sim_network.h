// A network in virtual time between clients and servers of tables: seeded delay, reordering, loss
// and repetition of messages and answers, busy senders, crashes.
// SPDX-License-Identifier: Apache-2.0
//
// Memory that is sent without a copy is read as late as the rules allow, so that a buffer that is
// freed or changed too early shows.
#pragma once
#include "ps/client/client.h"
#include "ps/server/server.h"
#include "sim_function.h"

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

struct Faults {
    int64_t longest_delay = 0;
    uint32_t lost = 0, repeated = 0, busy = 0; // per cent
};

// A server that decides wrongly is a right one that is told something else. applied: the server's
// clock, as its answers have said.
using Spoil = std::function<void(uint32_t server, dtrain::ps::RequestHeader &, uint64_t applied)>;
// What a disk does with a job.
using Read = std::function<void(dtrain::ps::Server &, dtrain::ps::ArchiveJob &)>;

class SimNetwork {
  public:
    SimNetwork(uint64_t seed, uint32_t workers, uint32_t servers, const Faults &faults,
               dtrain::ps::Client::Config config, uint64_t peer_limit = 0)
        : random_(seed), faults_(faults) {
        for (uint32_t s = 0; s < servers; ++s) {
            archives_.push_back(std::make_unique<SimArchive>(*this, s));
            servers_.push_back(std::make_unique<dtrain::ps::Server>(dtrain::ps::Server::Config{
                s, servers, workers, 0, archives_[s].get(), &sim_functions(), peer_limit}));
        }
        config.servers = servers;
        for (uint32_t w = 0; w < workers; ++w) {
            config.worker = w;
            wires_.push_back(std::make_unique<SimWire>(*this, w));
            clients_.push_back(std::make_unique<dtrain::ps::Client>(config, *wires_.back()));
        }
    }

    dtrain::ps::Client *client(uint32_t worker) { return clients_[worker].get(); }
    dtrain::ps::Server *server(uint32_t index) { return servers_[index].get(); }
    int64_t now() const { return now_; }
    uint64_t pick(uint64_t below) { return random_() % below; }
    size_t changed() const { return changed_.size(); } // servers that have made a change of mode
    void spoil(Spoil spoil) { spoil_ = std::move(spoil); }
    void read_by(Read read) { read_ = std::move(read); }

    void at(int64_t time, std::function<void()> event) { events_.emplace(time, std::move(event)); }
    // Runs the next event or timer; false when nothing is left.
    bool step() {
        int64_t time = events_.empty() ? INT64_MAX : events_.begin()->first;
        dtrain::ps::Client *due = nullptr;
        for (auto &client : clients_) {
            if (client == nullptr || client->next_timer() >= time) continue;
            time = client->next_timer();
            due = client.get();
        }
        if (time == INT64_MAX) return false;
        now_ = std::max(now_, time);
        if (due != nullptr) {
            ++now_; // a busy wire must not stop time
            due->on_timer(now_);
            return true;
        }
        auto event = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        event();
        return true;
    }

    void leave(uint32_t worker) {
        crash(worker);
        for (auto &server : servers_)
            if (server != nullptr) {
                dtrain::ps::Responses out;
                server->on_worker_left(worker, out);
                answer(out);
            }
    }
    // The servers hear of it some time later.
    void kill_worker(uint32_t worker) {
        crash(worker);
        for (uint32_t s = 0; s < servers_.size(); ++s)
            at(now_ + delay(), [this, s, worker] {
                if (servers_[s] == nullptr) return;
                dtrain::ps::Responses out;
                servers_[s]->on_worker_lost(worker, out);
                answer(out);
            });
    }
    void kill_server(uint32_t server) {
        dead_ = std::move(servers_[server]); // what it has sent is on its way
        for (uint32_t w = 0; w < clients_.size(); ++w)
            at(now_ + delay(), [this, w, server] {
                if (clients_[w] != nullptr) clients_[w]->on_server_lost(server, "server lost");
            });
    }

  private:
    using Key = std::tuple<uint32_t, uint32_t, uint64_t>; // server, table, sequence

    class SimWire : public dtrain::ps::Wire {
      public:
        SimWire(SimNetwork &network, uint32_t worker) : network_(network), worker_(worker) {}
        dtrain::Status send(uint32_t server, dtrain::ps::Outgoing &request) override {
            return network_.send(worker_, server, request);
        }
        void withdraw(uint32_t server, dtrain::ps::Outgoing &request) override {
            auto &posted = network_.posted_[worker_];
            posted.erase({server, request.header.table, request.header.sequence});
            ++network_.generation_[&request]; // sends that are under way come to nothing
            network_.at(network_.now_ + network_.delay(), [this, &request] {
                if (network_.client(worker_) != nullptr)
                    network_.client(worker_)->on_withdrawn(request, network_.now_);
            });
        }

      private:
        SimNetwork &network_;
        uint32_t worker_;
    };

    // One job at a time, each some time later.
    class SimArchive final : public dtrain::ps::Archive {
      public:
        SimArchive(SimNetwork &network, uint32_t server) : network_(network), server_(server) {}
        dtrain::Status start(std::unique_ptr<dtrain::ps::ArchiveJob> job) override {
            jobs_.push_back(std::move(job));
            ends_ = std::max(ends_, network_.now_) + network_.delay();
            network_.at(ends_, [this] {
                auto next = std::move(jobs_.front());
                jobs_.pop_front();
                network_.archived(server_, std::move(next));
            });
            return DTRAIN_OK;
        }

      private:
        SimNetwork &network_;
        uint32_t server_;
        int64_t ends_ = 0; // of the last job
        std::deque<std::unique_ptr<dtrain::ps::ArchiveJob>> jobs_;
    };

    int64_t delay() { return 1 + static_cast<int64_t>(pick(uint64_t(faults_.longest_delay))); }
    bool chance(uint32_t per_cent) { return pick(100) < per_cent; }
    uint32_t copies() { return chance(faults_.lost) ? 0 : chance(faults_.repeated) ? 2 : 1; }

    void crash(uint32_t worker) {
        clients_[worker].reset();
        posted_[worker].clear();
    }

    dtrain::Status send(uint32_t worker, uint32_t server, dtrain::ps::Outgoing &request) {
        if (chance(faults_.busy)) return DTRAIN_ERR_BUSY;
        const auto &header = request.header;
        posted_[worker][{server, header.table, header.sequence}] = &request;
        uint64_t generation = generation_[&request];
        at(now_ + delay(), [this, worker, server, &request, generation] {
            if (clients_[worker] == nullptr || generation != generation_[&request]) return;
            auto copy = request.header;
            std::string payload(static_cast<const char *>(request.payload), request.payload_bytes);
            clients_[worker]->on_sent(request, now_);
            for (uint32_t i = copies(); i > 0; --i)
                at(now_ + delay(), [=, this] { arrive(worker, server, copy, payload); });
        });
        return DTRAIN_OK;
    }

    void arrive(uint32_t worker, uint32_t server, dtrain::ps::RequestHeader header,
                const std::string &payload) {
        if (servers_[server] == nullptr) return;
        if (spoil_) spoil_(server, header, applied_[server]);
        dtrain::ps::Responses out;
        servers_[server]->on_request(worker, header, payload.data(), payload.size(), out);
        answer(out);
    }

    void archived(uint32_t server, std::unique_ptr<dtrain::ps::ArchiveJob> job) {
        if (servers_[server] == nullptr) return;
        read_(*servers_[server], *job);
        dtrain::ps::Responses out;
        servers_[server]->on_archived(std::move(job), out);
        answer(out);
    }

    void answer(dtrain::ps::Responses &responses) {
        for (auto &response : responses) {
            uint64_t &applied = applied_[response.header.server];
            if (response.header.reason == dtrain::ps::Reason::none)
                applied = std::max(applied, response.header.numbers[1]);
            if (response.header.kind == dtrain::ps::RequestKind::set_mode &&
                response.header.reason == dtrain::ps::Reason::none &&
                response.header.numbers[0] == 1)
                changed_.insert(response.header.server);
            auto kept = std::make_shared<dtrain::ps::Response>(std::move(response));
            at(now_ + delay(), [this, kept] { // only now it is read from the shard
                std::string payload(static_cast<const char *>(kept->payload), kept->bytes);
                for (uint32_t i = copies(); i > 0; --i)
                    at(now_ + delay(), [=, this, worker = kept->worker, header = kept->header] {
                        land(worker, header, payload);
                    });
            });
        }
    }

    void land(uint32_t worker, const dtrain::ps::ResponseHeader &header,
              const std::string &payload) {
        auto &posted = posted_[worker];
        auto found = posted.find({header.server, header.table, header.sequence});
        if (clients_[worker] == nullptr || found == posted.end()) return;
        dtrain::ps::Outgoing &request = *found->second;
        if (payload.size() > request.answer_bytes) return; // of the request before it was canceled
        if (!payload.empty()) std::memcpy(request.answer, payload.data(), payload.size());
        posted.erase(found);
        bool taken = clients_[worker]->on_response(request, header, payload.size(), now_);
        if (!taken) posted[{header.server, header.table, header.sequence}] = &request;
    }

    std::mt19937_64 random_;
    Faults faults_;
    int64_t now_ = 0;
    Spoil spoil_;
    Read read_;
    std::map<uint32_t, uint64_t> applied_; // by server
    std::vector<std::unique_ptr<SimArchive>> archives_;
    std::set<uint32_t> changed_;
    std::vector<std::unique_ptr<dtrain::ps::Server>> servers_; // nullptr: crashed
    std::unique_ptr<dtrain::ps::Server> dead_;
    std::multimap<int64_t, std::function<void()>> events_;
    std::vector<std::unique_ptr<SimWire>> wires_;
    std::vector<std::unique_ptr<dtrain::ps::Client>> clients_;         // nullptr: crashed or left
    std::map<uint32_t, std::map<Key, dtrain::ps::Outgoing *>> posted_; // by worker
    std::map<dtrain::ps::Outgoing *, uint64_t> generation_;
};

// Computes the cost of a collective by simulating every step.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/cost/price.h"
#include "collectives/call/link.h"
#include "collectives/call/topology.h"

#include <algorithm>
#include <queue>

namespace dtrain::collectives {

using engine::Step;
using engine::StepKind;

namespace {

class Simulation {
  public:
    Simulation(const Linked &linked, const NetworkModel &model, const Topology *topology)
        : linked_(linked), model_(model),
          topology_(topology != nullptr && topology->levels() > 0 ? topology : nullptr),
          missing_(linked.size()), half_(linked.size()), ranks_(linked.schedules.size()),
          hosts_(topology_ == nullptr ? ranks_.size() : size_t(topology_->group_count(0))) {}

    // Returns the time of the last event; `ended` gets the number of steps that ended.
    double run(uint32_t &ended) {
        for (uint32_t id = 0; id < linked_.size(); id++) {
            missing_[id] = linked_.step(id).deps_count;
            if (missing_[id] == 0) at(0, Phase::ready, id);
        }
        while (!events_.empty()) {
            Event event = events_.top();
            events_.pop();
            now_ = event.time;
            handle(event);
        }
        ended = ended_;
        return now_;
    }

  private:
    enum class Phase : uint8_t {
        ready,    // its dependencies are done
        issued,   // a send: the processor has handed it to the outgoing link
        arriving, // a receive: the first byte has reached the incoming link
        arrived,  // a receive: the last byte has arrived
        done
    };
    struct Event {
        double time;
        uint64_t order; // for equal times: first come, first served
        Phase phase;
        uint32_t id;
        bool operator>(const Event &other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };
    struct Link {
        double out_free = 0, in_free = 0;
    };
    struct Rank {
        double processor_free = 0;
        Link local; // to other ranks of its host
    };

    void at(double time, Phase phase, uint32_t id) { events_.push({time, order_++, phase, id}); }

    // Occupies a resource that is free at `free` for `cost` from now on; returns when it is done.
    double occupy(double &free, double cost) { return free = std::max(free, now_) + cost; }

    size_t host(int32_t rank) const {
        return size_t(topology_ == nullptr ? rank : topology_->group(0, rank));
    }
    bool is_local(uint32_t id) const {
        int32_t peer = linked_.step(id).peer; // -1: none
        return topology_ != nullptr && peer >= 0 && host(linked_.owner[id]) == host(peer);
    }
    Link &link_of(uint32_t id) {
        int32_t rank = linked_.owner[id];
        return is_local(id) ? ranks_[size_t(rank)].local : hosts_[host(rank)];
    }

    double work(uint32_t id) const {
        const Step &step = linked_.step(id);
        double bytes = double(step.bytes);
        double overhead = is_local(id) ? model_.host_overhead_ns : model_.overhead_ns;
        switch (step.kind) {
        case StepKind::send:
        case StepKind::recv: return overhead;
        case StepKind::recv_reduce: return overhead + bytes * model_.reduce_ns_per_byte;
        case StepKind::reduce:
        case StepKind::dots:
        case StepKind::add_sums:
        case StepKind::blend: return bytes * model_.reduce_ns_per_byte;
        case StepKind::weigh: return bytes * step.terms_count * model_.reduce_ns_per_byte;
        case StepKind::copy:
        case StepKind::scale:
        case StepKind::hash:
        case StepKind::compare: break;
        }
        return bytes * model_.copy_ns_per_byte;
    }

    void handle(const Event &event) {
        uint32_t id = event.id;
        const Step &step = linked_.step(id);
        double wire =
            double(step.bytes) * (is_local(id) ? model_.host_ns_per_byte : model_.ns_per_byte);
        switch (event.phase) {
        case Phase::ready:
        case Phase::arrived: // a receive needs both phases
            if (receives(step.kind) && !half_[id]) {
                half_[id] = true;
                break;
            }
            at(occupy(ranks_[size_t(linked_.owner[id])].processor_free, work(id)),
               step.kind == StepKind::send ? Phase::issued : Phase::done, id);
            break;
        case Phase::issued: {
            double sent = occupy(link_of(id).out_free, wire);
            double latency = is_local(id) ? model_.host_latency_ns : model_.latency_ns;
            at(sent - wire + latency, Phase::arriving, linked_.match[id]);
            at(sent, Phase::done, id);
            break;
        }
        case Phase::arriving: at(occupy(link_of(id).in_free, wire), Phase::arrived, id); break;
        case Phase::done:
            ended_++;
            for (uint32_t dependent : linked_.waiting_for(id))
                if (--missing_[dependent] == 0) at(now_, Phase::ready, dependent);
            break;
        }
    }

    const Linked &linked_;
    const NetworkModel &model_;
    const Topology *const topology_; // nullptr: each rank is a host
    std::vector<uint32_t> missing_;  // dependencies that are not done
    std::vector<bool> half_;         // receives that are either ready or have arrived
    std::vector<Rank> ranks_;
    std::vector<Link> hosts_; // links to other hosts
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    uint64_t order_ = 0;
    double now_ = 0;
    uint32_t ended_ = 0;
};

} // namespace

Status price(std::span<const engine::Schedule> schedules, const NetworkModel &model,
             double &total_ns, const Topology *topology) {
    Linked linked;
    if (Status s = link(schedules, linked); s < 0) return s;
    uint32_t ended = 0;
    double end = Simulation(linked, model, topology).run(ended);
    if (ended != linked.size())
        return fail(DTRAIN_ERR_INVALID, "deadlock: %u of %u steps never end", linked.size() - ended,
                    linked.size());
    total_ns = end;
    return DTRAIN_OK;
}

} // namespace dtrain::collectives

// What a collective costs: simulation of every step.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/price.h"
#include "collectives/link.h"

#include <algorithm>
#include <queue>

namespace dtrain::collectives {

using engine::Step;
using engine::StepKind;

namespace {

class Simulation {
  public:
    Simulation(const Linked &linked, const NetworkModel &model)
        : linked_(linked), model_(model), missing_(linked.size()), half_(linked.size()),
          ranks_(linked.schedules.size()) {}

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
        issued,   // a send: the processor has handed it to the link out
        arriving, // a receive: the first byte is at the link in
        arrived,  // a receive: the last byte is there
        done
    };
    struct Event {
        double time;
        uint64_t order; // of equal times: first come, first served
        Phase phase;
        uint32_t id;
        bool operator>(const Event &other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };
    struct Rank {
        double processor_free = 0, out_free = 0, in_free = 0;
    };

    void at(double time, Phase phase, uint32_t id) { events_.push({time, order_++, phase, id}); }

    // When a resource that is free at `free` will have worked for `cost` from now on.
    double occupy(double &free, double cost) { return free = std::max(free, now_) + cost; }

    double work(const Step &step) const {
        double bytes = double(step.bytes);
        switch (step.kind) {
        case StepKind::send:
        case StepKind::recv: return model_.overhead_ns;
        case StepKind::recv_reduce: return model_.overhead_ns + bytes * model_.reduce_ns_per_byte;
        case StepKind::reduce: return bytes * model_.reduce_ns_per_byte;
        case StepKind::copy:
        case StepKind::scale: break;
        }
        return bytes * model_.copy_ns_per_byte;
    }

    void handle(const Event &event) {
        uint32_t id = event.id;
        const Step &step = linked_.step(id);
        Rank &rank = ranks_[size_t(linked_.owner[id])];
        double wire = double(step.bytes) * model_.ns_per_byte;
        switch (event.phase) {
        case Phase::ready:
        case Phase::arrived: // a receive needs both
            if (receives(step.kind) && !half_[id]) {
                half_[id] = true;
                break;
            }
            at(occupy(rank.processor_free, work(step)),
               step.kind == StepKind::send ? Phase::issued : Phase::done, id);
            break;
        case Phase::issued: {
            double sent = occupy(rank.out_free, wire);
            at(sent - wire + model_.latency_ns, Phase::arriving, linked_.match[id]);
            at(sent, Phase::done, id);
            break;
        }
        case Phase::arriving: at(occupy(rank.in_free, wire), Phase::arrived, id); break;
        case Phase::done:
            ended_++;
            for (uint32_t dependent : linked_.waiting_for(id))
                if (--missing_[dependent] == 0) at(now_, Phase::ready, dependent);
            break;
        }
    }

    const Linked &linked_;
    const NetworkModel &model_;
    std::vector<uint32_t> missing_; // dependencies not done
    std::vector<bool> half_;        // receives that are ready or have arrived, not both
    std::vector<Rank> ranks_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    uint64_t order_ = 0;
    double now_ = 0;
    uint32_t ended_ = 0;
};

} // namespace

Status price(std::span<const engine::Schedule> schedules, const NetworkModel &model,
             double &total_ns) {
    Linked linked;
    if (Status s = link(schedules, linked); s < 0) return s;
    uint32_t ended = 0;
    double end = Simulation(linked, model).run(ended);
    if (ended != linked.size())
        return fail(DTRAIN_ERR_INVALID, "deadlock: %u of %u steps never end", linked.size() - ended,
                    linked.size());
    total_ns = end;
    return DTRAIN_OK;
}

} // namespace dtrain::collectives

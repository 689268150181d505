// Graphs: averages with neighbors instead of all ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_GRAPH_HPP
#define DTRAIN_GRAPH_HPP
#include "request.hpp"

#include <map>
#include <vector>

namespace dtrain {
inline namespace cxx {

class GraphParams {
  public:
    GraphParams(Topology topology) noexcept {
        DTRAIN_INIT(&params_);
        params_.kind = static_cast<uint32_t>(topology);
    }
    // CUSTOM: the ranks whose values this rank gets, or these ranks with their weights and this
    // rank's.
    explicit GraphParams(std::vector<int32_t> neighbors) : GraphParams(Topology::CUSTOM) {
        in_ = std::move(neighbors);
    }
    GraphParams(const std::map<int32_t, double> &neighbors, double self_weight)
        : GraphParams(Topology::CUSTOM) {
        for (const auto &[rank, weight] : neighbors) {
            in_.push_back(rank);
            weights_.push_back(weight);
        }
        weighted_ = true;
        params_.self_weight = self_weight;
    }
    // The ranks that name this rank as a neighbor; checked against what they give.
    GraphParams &out_neighbors(std::vector<int32_t> ranks) {
        out_ = std::move(ranks);
        return *this;
    }
    // Columns of the matrix need not sum to 1; weights may be negative.
    GraphParams &rows_only() {
        params_.flags |= DTRAIN_GRAPH_ROWS_ONLY;
        return *this;
    }
    GraphParams &with_negative_weights() {
        params_.flags |= DTRAIN_GRAPH_SIGNED;
        return *this;
    }

  private:
    friend class Communicator;
    dtrain_graph_params_t whole() const {
        static const double none = 0; // a valid address for an empty array
        dtrain_graph_params_t params = params_;
        params.in_count = static_cast<int32_t>(in_.size());
        params.in_neighbors = in_.empty() ? nullptr : in_.data();
        if (weighted_) params.in_weights = weights_.empty() ? &none : weights_.data();
        params.out_count = static_cast<int32_t>(out_.size());
        params.out_neighbors = out_.empty() ? nullptr : out_.data();
        return params;
    }
    dtrain_graph_params_t params_;
    std::vector<int32_t> in_, out_;
    std::vector<double> weights_;
    bool weighted_ = false;
};

// Collectives of the graph's communicator that wait for neighbors only.
template <class Way> class GraphOperations {
  public:
    using Done = typename Way::Done;
    GraphOperations(Way way, std::shared_ptr<dtrain_graph_t> graph)
        : way_(std::move(way)), graph_(std::move(graph)) {}
    // array = the weighted mean of this rank's array and the in-neighbors' arrays
    Done average(Output array) const { return average(array, array); }
    Done average(Input array, Output out) const {
        detail::fits("average", array.count, array.dtype, out);
        return run(dtrain_neighbor_average, array, out, array.count);
    }
    // out = the in-neighbors' arrays, in the order of their ranks
    Done allgather(Input array, Output out) const {
        detail::fits("allgather", array.count * degree(DTRAIN_GRAPH_IN), array.dtype, out);
        return run(dtrain_neighbor_allgather, array, out, array.count);
    }
    // Sends a block of array to each out-neighbor; gets a block of out from each in-neighbor.
    Done alltoall(Input array, Output out) const {
        const uint64_t peers = degree(DTRAIN_GRAPH_OUT);
        const uint64_t count = peers == 0 ? 0 : array.count / peers;
        if (count * peers != array.count)
            throw InvalidError(
                "alltoall: the array has to hold the same number of elements for each neighbor");
        detail::fits("alltoall", count * degree(DTRAIN_GRAPH_IN), array.dtype, out);
        return run(dtrain_neighbor_alltoall, array, out, count);
    }

  protected:
    uint64_t degree(uint32_t direction) const {
        const int32_t count = dtrain_graph_neighbors(graph_.get(), direction, nullptr, nullptr, 0);
        detail::check(count);
        return static_cast<uint64_t>(count);
    }
    Way way_;
    std::shared_ptr<dtrain_graph_t> graph_;

  private:
    template <class Call>
    Done run(Call call, const Input &array, const Output &out, uint64_t count) const {
        return way_.run([&](auto params, auto request) {
            return call(graph_.get(), array.data, out.data, count, detail::number(array.dtype),
                        params, request);
        });
    }
};

// Made by Communicator::graph().
class Graph : public GraphOperations<detail::Blocking> {
  public:
    using GraphOperations::GraphOperations;
    Graph(Graph &&) = default;
    Graph &operator=(Graph &&) = default;
    GraphOperations<detail::Started> start(const OpParams &params = {}) const {
        return GraphOperations<detail::Started>(
            detail::Started{detail::Way{way_.comm, false, params}}, graph_);
    }
    GraphOperations<detail::Prepared> prepare(const OpParams &params = {}) const {
        return GraphOperations<detail::Prepared>(
            detail::Prepared{detail::Way{way_.comm, false, params}}, graph_);
    }
    GraphOperations<detail::Blocking> with(const OpParams &params) const {
        return GraphOperations<detail::Blocking>(
            detail::Blocking{detail::Way{way_.comm, false, params}}, graph_);
    }
    // {rank: weight} of the ranks whose values this rank gets, and of those that get its value.
    std::map<int32_t, double> in_neighbors() const { return neighbors(DTRAIN_GRAPH_IN); }
    std::map<int32_t, double> out_neighbors() const { return neighbors(DTRAIN_GRAPH_OUT); }
    double self_weight() const {
        double weight = 0;
        detail::check(dtrain_graph_self_weight(graph_.get(), &weight));
        return weight;
    }
    double spectral_gap() const {
        double gap = 0;
        detail::check(dtrain_graph_spectral_gap(graph_.get(), &gap));
        return gap;
    }

  private:
    std::map<int32_t, double> neighbors(uint32_t direction) const {
        const auto count = static_cast<size_t>(degree(direction));
        std::vector<int32_t> ranks(count);
        std::vector<double> weights(count);
        detail::check(dtrain_graph_neighbors(graph_.get(), direction, ranks.data(), weights.data(),
                                             static_cast<int32_t>(count)));
        std::map<int32_t, double> found;
        for (size_t i = 0; i < count; i++) found[ranks[i]] = weights[i];
        return found;
    }
};

} // namespace cxx
} // namespace dtrain
#endif

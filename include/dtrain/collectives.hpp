// Collectives and messages, for each way to run them.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_COLLECTIVES_HPP
#define DTRAIN_COLLECTIVES_HPP
#include "request.hpp"

namespace dtrain {
inline namespace cxx {

// All ranks call the same collectives in the same order. Arrays are not copied. A block is the part
// of an array that belongs to one rank. The counts of the v-variants are the elements of each
// rank's block; displacements say where the blocks begin ({}: one after the other).
template <class Way> class Collectives {
  public:
    using Done = typename Way::Done;   // void, or a Request
    using Found = typename Way::Found; // a Result, or a Request
    using Counts = Span<const uint64_t>;

    // array = the sum (or another op) of all ranks' arrays
    Done allreduce(Output array, Op op = Op::SUM) const { return allreduce(array, array, op); }
    Done allreduce(Input array, Output out, Op op = Op::SUM) const {
        detail::fits("allreduce", array.count, array.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_allreduce(comm(), array.data, out.data, array.count, dtype(array),
                                    detail::number(op), params, request);
        });
    }
    // As allreduce, but only root gets the result; on other ranks out is {}.
    Done reduce(Output array, Op op = Op::SUM, int root = 0) const {
        return reduce(array, array, op, root);
    }
    Done reduce(Input array, Output out, Op op = Op::SUM, int root = 0) const {
        if (out.data != nullptr) detail::fits("reduce", array.count, array.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_reduce(comm(), array.data, out.data, array.count, dtype(array),
                                 detail::number(op), root, params, request);
        });
    }
    // out = this rank's block of the sum. In place: out is that block of array.
    Done reduce_scatter(Input array, Output out, Op op = Op::SUM) const {
        detail::fits("reduce_scatter", each("reduce_scatter", array), array.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_reduce_scatter(comm(), array.data, out.data, out.count, dtype(array),
                                         detail::number(op), params, request);
        });
    }
    Done reduce_scatterv(Input array, Output out, Counts counts, Op op = Op::SUM) const {
        blocks("reduce_scatterv", counts, {}, array.count);
        detail::fits("reduce_scatterv", counts[rank()], array.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_reduce_scatterv(comm(), array.data, out.data, counts.data(), dtype(array),
                                          detail::number(op), params, request);
        });
    }
    // out = all ranks' arrays. In place: array is this rank's block of out.
    Done allgather(Input array, Output out) const {
        detail::fits("allgather", array.count * size(), array.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_allgather(comm(), array.data, out.data, array.count, dtype(array), params,
                                    request);
        });
    }
    Done allgatherv(Input array, Output out, Counts counts, Counts displs = {}) const {
        blocks("allgatherv", counts, displs, out.count);
        give("allgatherv", array, counts, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_allgatherv(comm(), array.data, out.data, counts.data(), displs.data(),
                                     dtype(array), params, request);
        });
    }
    // Copies root's array to all ranks.
    Done broadcast(Output array, int root = 0) const {
        return way_.run([&](auto params, auto request) {
            return dtrain_broadcast(comm(), array.data, array.count, dtype(array), root, params,
                                    request);
        });
    }
    // On root: out = all ranks' arrays. On other ranks out is {}.
    Done gather(Input array, Output out = {}, int root = 0) const {
        if (out.data != nullptr) detail::fits("gather", array.count * size(), array.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_gather(comm(), array.data, out.data, array.count, dtype(array), root,
                                 params, request);
        });
    }
    // All ranks give the counts.
    Done gatherv(Input array, Output out, Counts counts, Counts displs = {}, int root = 0) const {
        if (out.data != nullptr) blocks("gatherv", counts, displs, out.count);
        give("gatherv", array, counts, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_gatherv(comm(), array.data, out.data, counts.data(), displs.data(),
                                  dtype(array), root, params, request);
        });
    }
    // out = this rank's block of root's array. On other ranks array is {}.
    Done scatter(Input array, Output out, int root = 0) const {
        if (array.data != nullptr)
            detail::fits("scatter", each("scatter", array), array.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_scatter(comm(), array.data, out.data, out.count, dtype(out), root, params,
                                  request);
        });
    }
    Done scatterv(Input array, Output out, Counts counts, Counts displs = {}, int root = 0) const {
        if (array.data != nullptr) blocks("scatterv", counts, displs, array.count);
        if (counts.size() != size()) one_each("scatterv");
        detail::fits("scatterv", counts[rank()], out.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_scatterv(comm(), array.data, out.data, counts.data(), displs.data(),
                                   dtype(out), root, params, request);
        });
    }
    // Block j of array goes to rank j; block j of out comes from rank j.
    Done alltoall(Input array, Output out) const {
        detail::fits("alltoall", array.count, array.dtype, out);
        const uint64_t count = each("alltoall", array);
        return way_.run([&](auto params, auto request) {
            return dtrain_alltoall(comm(), array.data, out.data, count, dtype(array), params,
                                   request);
        });
    }
    Done alltoallv(Input array, Counts send_counts, Output out, Counts recv_counts,
                   Counts send_displs = {}, Counts recv_displs = {}) const {
        blocks("alltoallv", send_counts, send_displs, array.count);
        blocks("alltoallv", recv_counts, recv_displs, out.count);
        detail::fits("alltoallv", out.count, array.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_alltoallv(comm(), array.data, send_counts.data(), send_displs.data(),
                                    out.data, recv_counts.data(), recv_displs.data(), dtype(array),
                                    params, request);
        });
    }
    // Waits until all ranks have called it.
    Done barrier() const {
        return way_.run(
            [&](auto params, auto request) { return dtrain_barrier(comm(), params, request); });
    }
    // Sends a message to peer; messages of one tag arrive in order.
    Done send(Input array, int peer, uint32_t tag = 0) const {
        return way_.run([&](auto params, auto request) {
            return dtrain_send(comm(), array.data, array.count, dtype(array), peer, tag, params,
                               request);
        });
    }
    // Receives a message from peer, or from any rank; the result has its sender and its length.
    Found recv(Output array, int peer = ANY_RANK, uint32_t tag = 0) const {
        return way_.find([&](auto params, auto request) {
            return dtrain_recv(comm(), array.data, array.count, dtype(array), peer, tag, params,
                               request);
        });
    }

    explicit Collectives(Way way)
        : way_(std::move(way)), rank_(static_cast<size_t>(dtrain_comm_rank(comm()))),
          size_(static_cast<size_t>(dtrain_comm_size(comm()))) {}

  protected:
    Way way_;

  private:
    dtrain_comm_t *comm() const noexcept { return way_.comm.get(); }
    size_t rank() const noexcept { return rank_; }
    size_t size() const noexcept { return size_; }
    template <class Array> static uint32_t dtype(const Array &array) {
        return detail::number(array.dtype);
    }
    [[noreturn, gnu::cold, gnu::noinline]] void one_each(const char *call) const {
        throw InvalidError(std::string(call) + ": counts and displacements need one for each of " +
                           std::to_string(size()) + " ranks");
    }
    // The number of elements of each rank's block.
    uint64_t each(const char *call, const Input &array) const {
        if (array.count % size() != 0)
            throw InvalidError(std::string(call) + ": " + std::to_string(array.count) +
                               " elements cannot be divided evenly among " +
                               std::to_string(size()) + " ranks");
        return array.count / size();
    }
    // Checks that a buffer of `available` elements holds all blocks.
    void blocks(const char *call, Counts counts, Counts displs, uint64_t available) const {
        if (counts.size() != size() || (displs.data() != nullptr && displs.size() != size()))
            one_each(call);
        uint64_t end = 0;
        for (size_t i = 0; i < size(); i++) {
            const uint64_t first = displs.data() != nullptr ? displs[i] : end;
            if (first > available || counts[i] > available - first)
                throw InvalidError(std::string(call) + ": the block of rank " + std::to_string(i) +
                                   " ends beyond the array's " + std::to_string(available) +
                                   " elements");
            end = first + counts[i];
        }
    }
    // Checks that the array is as long as this rank's block.
    void give(const char *call, const Input &array, Counts counts, const Output &out) const {
        if (counts.size() != size()) one_each(call);
        if (array.count != counts[rank()] || (out.data != nullptr && out.dtype != array.dtype))
            throw InvalidError(
                std::string(call) + ": this rank's block has " + std::to_string(counts[rank()]) +
                " elements of the output's dtype, not " + std::to_string(array.count));
    }
    size_t rank_, size_;
};

} // namespace cxx
} // namespace dtrain
#endif

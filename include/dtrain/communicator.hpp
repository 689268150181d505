// Communicators, and the objects that they create: tables, gradient queues, compressors, graphs.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_COMMUNICATOR_HPP
#define DTRAIN_COMMUNICATOR_HPP
#include "collectives.hpp"
#include "gradients.hpp"
#include "graph.hpp"
#include "table.hpp"

#include <chrono>

namespace dtrain {
inline namespace cxx {

class ReformParams {
  public:
    ReformParams() noexcept { DTRAIN_INIT(&params_); }
    // Workers of the new communicator, at least: if there are fewer, it waits for newcomers.
    ReformParams &min_size(int workers) {
        params_.min_size = workers;
        return *this;
    }
    // At most; others go on waiting.
    ReformParams &max_size(int workers) {
        params_.max_size = workers;
        return *this;
    }
    // This process leaves the job.
    ReformParams &leave() {
        params_.leaves = 1;
        return *this;
    }
    template <class Rep, class Period>
    ReformParams &timeout(std::chrono::duration<Rep, Period> duration) {
        params_.timeout_ns = detail::positive(duration, "timeout");
        return *this;
    }
    const dtrain_reform_params_t &raw() const noexcept { return params_; }

  private:
    dtrain_reform_params_t params_;
};

// An ordered group of ranks. Its operations block. start() offers them with requests, prepare()
// with requests that can be started many times, with() with parameters:
//     comm.allreduce(gradient, Op::AVG);
//     Request request = comm.start().allreduce(gradient);
//     comm.with(OpParams().timeout(5s)).broadcast(weights);
class Communicator : public Collectives<detail::Blocking> {
  public:
    explicit Communicator(std::shared_ptr<dtrain_comm_t> handle)
        : Collectives(detail::Blocking{detail::Way{std::move(handle)}}) {}
    Communicator(Communicator &&) = default;
    Communicator &operator=(Communicator &&) = default;

    Collectives<detail::Started> start() const { return by<detail::Started>(); }
    Collectives<detail::Started> start(const OpParams &params) const {
        return by<detail::Started>(params);
    }
    Collectives<detail::Prepared> prepare() const { return by<detail::Prepared>(); }
    Collectives<detail::Prepared> prepare(const OpParams &params) const {
        return by<detail::Prepared>(params);
    }
    Collectives<detail::Blocking> with(const OpParams &params) const {
        return by<detail::Blocking>(params);
    }

    int rank() const noexcept { return dtrain_comm_rank(handle()); }
    int size() const noexcept { return dtrain_comm_size(handle()); }
    // Creates one communicator per color, its ranks ordered by (key, rank); a rank with a negative
    // color gets none. Collective.
    std::optional<Communicator> split(int color, int key = 0) const {
        return made([&](auto **out) { return dtrain_comm_split(handle(), color, key, out); });
    }
    // Creates a communicator of these ranks in this order; other ranks get none. All ranks call it.
    std::optional<Communicator> subset(Span<const int32_t> ranks) const {
        return made([&](auto **out) {
            return dtrain_comm_subset(handle(), ranks.data(), static_cast<int32_t>(ranks.size()),
                                      out);
        });
    }
    // Creates a communicator of these ranks in this order, by these ranks alone: each of them gives
    // the same list and tag. Other ranks take no part. timeout 0: option op.timeout; < 0: none.
    Communicator create_group(Span<const int32_t> ranks, int32_t tag = 0,
                              std::chrono::nanoseconds timeout = {}) const {
        return *made([&](auto **out) {
            return dtrain_comm_create_group(handle(), ranks.data(),
                                            static_cast<int32_t>(ranks.size()), tag,
                                            timeout.count(), out);
        });
    }
    // Creates a communicator of the same ranks, with a separate order of calls. Collective.
    Communicator duplicate() const {
        return *made([&](auto **out) { return dtrain_comm_duplicate(handle(), out); });
    }
    // Creates a communicator of the ranks that are alive, to continue after a PeerError. All of
    // them call it.
    Communicator shrink() const {
        return *made([&](auto **out) { return dtrain_comm_shrink(handle(), out); });
    }
    // The next generation of an elastic job: the workers that live, and newcomers. All living
    // workers call it. A worker that leaves by it gets none.
    std::optional<Communicator> reform(const ReformParams &params = {}) const {
        return made([&](auto **out) { return dtrain_comm_reform(handle(), &params.raw(), out); });
    }
    // How many processes wait to be taken in by reform().
    int newcomers() const {
        const int32_t count = dtrain_comm_newcomers(handle());
        detail::check(count);
        return count;
    }
    // How the reform that made this communicator has changed the job, as JSON; "{}": none did.
    std::string changes() const {
        return detail::text_of(
            [&](char *buffer, size_t size) { return dtrain_comm_changes(handle(), buffer, size); });
    }
    // Ends every operation on all ranks with an AbortedError and this reason.
    void abort(const std::string &reason) const {
        detail::check(dtrain_comm_abort(handle(), reason.c_str()));
    }
    // Throws the error that broke the communicator; does nothing while it is intact.
    void check() const {
        const Status status = dtrain_comm_status(handle());
        if (status < 0) way_.fail(status);
    }
    // The ranks that failed.
    std::vector<int32_t> failed() const {
        std::vector<int32_t> ranks(static_cast<size_t>(size()));
        const int32_t count = dtrain_comm_failed(handle(), ranks.data(), size());
        detail::check(count);
        ranks.resize(static_cast<size_t>(count));
        return ranks;
    }
    // Creates a table of the job, dense (length) or sparse (dim). Collective.
    Table table(const std::string &name, const TableParams &given) const {
        dtrain_table_params_t params = given.raw();
        if (!given.function_.empty()) params.function = given.function_.c_str();
        params.segments = given.segments_.empty() ? nullptr : given.segments_.data();
        params.segment_count = static_cast<uint32_t>(given.segments_.size());
        params.weights = given.weights_.empty() ? nullptr : given.weights_.data();
        params.weight_count = static_cast<uint32_t>(given.weights_.size());
        Placer placer{&given.place_, {}};
        if (given.place_) {
            params.place = &Placer::place;
            params.place_arg = &placer;
        }
        dtrain_table_t *table = nullptr;
        placer.caught.check(dtrain_table_create(handle(), name.c_str(), &params, &table));
        return Table(way_, detail::own(table, dtrain_table_destroy, way_.comm),
                     static_cast<DType>(params.dtype), params.dim);
    }
    // Creates a queue of named tensors that ranks submit in any order. Collective.
    Gradients gradients(const GradientsParams &params = {}) const {
        dtrain_gradients_t *gradients = nullptr;
        detail::check(dtrain_gradients_create(handle(), &params.raw(), &gradients));
        return Gradients(way_, detail::own(gradients, dtrain_gradients_destroy, way_.comm));
    }
    // Creates a compressor, which all-reduces vectors of count f32 with fewer bytes sent.
    // Collective.
    Compressor compressor(const CompressorParams &params) const {
        dtrain_compressor_t *compressor = nullptr;
        detail::check(dtrain_compressor_create(handle(), &params.raw(), &compressor));
        return Compressor(way_, detail::own(compressor, dtrain_compressor_destroy, way_.comm),
                          params.raw().count);
    }
    // Creates a graph: which ranks average with which. Collective.
    Graph graph(const GraphParams &given) const {
        const dtrain_graph_params_t params = given.whole();
        dtrain_graph_t *graph = nullptr;
        detail::check(dtrain_graph_create(handle(), &params, &graph));
        return Graph(way_, detail::own(graph, dtrain_graph_destroy, way_.comm));
    }
    // Measures the network between the ranks, for the option "tuning.file". Collective.
    void tune(const std::string &path) const {
        detail::check(dtrain_comm_tune(handle(), path.c_str()));
    }
    dtrain_comm_t *handle() const noexcept { return way_.comm.get(); }

  private:
    struct Placer {
        const PlaceFunction *function;
        detail::Caught caught;
        static uint32_t place(void *arg, uint64_t first, uint64_t count, uint32_t servers) {
            auto *self = static_cast<Placer *>(arg);
            // No server has this number, so the table is refused.
            return self->caught.run(UINT32_MAX,
                                    [&] { return (*self->function)(first, count, servers); });
        }
    };
    template <class Way> Collectives<Way> by() const {
        return Collectives<Way>(Way{detail::Way{way_.comm}});
    }
    template <class Way> Collectives<Way> by(const OpParams &params) const {
        return Collectives<Way>(Way{detail::Way{way_.comm, false, params}});
    }
    template <class Make> std::optional<Communicator> made(Make &&make) const {
        dtrain_comm_t *comm = nullptr;
        const Status status = make(&comm);
        if (status < 0) way_.fail(status);
        if (comm == nullptr) return std::nullopt;
        return std::optional<Communicator>(
            std::in_place, detail::own(comm, dtrain_comm_destroy, detail::maker_of(way_.comm)));
    }
};

} // namespace cxx
} // namespace dtrain
#endif

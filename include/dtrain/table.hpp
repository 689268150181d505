// Tables, which are arrays on the servers, dense or sparse (rows by keys), and their checkpoints.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_TABLE_HPP
#define DTRAIN_TABLE_HPP
#include "request.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace dtrain {
inline namespace cxx {
namespace detail {

// The rule's numbers, which tables and segments have in common.
template <class Derived, class Params> class RuleParams {
  public:
    RuleParams() noexcept { DTRAIN_INIT(&params_); }
    Derived &rule(Rule value) { return set(params_.rule, static_cast<uint32_t>(value)); }
    Derived &clip_value(double value) { return set(params_.clip_value, value); }
    Derived &clip_norm(double value) { return set(params_.clip_norm, value); }
    Derived &weight_decay(double value) { return set(params_.weight_decay, value); }
    Derived &l1(double value) { return set(params_.l1, value); }
    Derived &l2(double value) { return set(params_.l2, value); }
    // These have a default; a 0 that is given here is taken as 0.
    Derived &learning_rate(double value) {
        return give(params_.learning_rate, value, DTRAIN_GIVEN_LEARNING_RATE);
    }
    Derived &momentum(double value) { return give(params_.momentum, value, DTRAIN_GIVEN_MOMENTUM); }
    Derived &beta1(double value) { return give(params_.beta1, value, DTRAIN_GIVEN_BETA1); }
    Derived &beta2(double value) { return give(params_.beta2, value, DTRAIN_GIVEN_BETA2); }
    Derived &epsilon(double value) { return give(params_.epsilon, value, DTRAIN_GIVEN_EPSILON); }
    Derived &rho(double value) { return give(params_.rho, value, DTRAIN_GIVEN_RHO); }
    Derived &trust(double value) { return give(params_.trust, value, DTRAIN_GIVEN_TRUST); }
    Derived &ftrl_beta(double value) {
        return give(params_.ftrl_beta, value, DTRAIN_GIVEN_FTRL_BETA);
    }
    Derived &accumulator(double value) {
        return give(params_.accumulator, value, DTRAIN_GIVEN_ACCUMULATOR);
    }
    // The C struct, for fields that have no setter here.
    Params &raw() noexcept { return params_; }
    const Params &raw() const noexcept { return params_; }

  protected:
    template <class T, class V> Derived &set(T &field, V value) {
        field = static_cast<T>(value);
        return static_cast<Derived &>(*this);
    }
    // For fields whose 0 means the default: sets the bit that makes a 0 count.
    template <class T> Derived &give(T &field, T value, uint32_t bit) {
        params_.given |= bit;
        return set(field, value);
    }
    Params params_;
};

} // namespace detail

// Columns [first, first + count) of each row, updated by a separate rule.
class Segment : public detail::RuleParams<Segment, dtrain_segment_t> {
  public:
    Segment(uint64_t first, uint64_t count) {
        params_.first = first;
        params_.count = count;
    }
};

// Returns the server (from 0, below `servers`) of the elements or keys [first, first + count).
using PlaceFunction = std::function<uint32_t(uint64_t first, uint64_t count, uint32_t servers)>;

// TableParams().length(1000).rule(Rule::SGD).learning_rate(0.1); names and defaults are those of
// dtrain_table_params_t.
class TableParams : public detail::RuleParams<TableParams, dtrain_table_params_t> {
  public:
    TableParams() { dtype(DType::F32); }
    TableParams &dtype(DType value) { return set(params_.dtype, value); }
    TableParams &length(uint64_t value) { return set(params_.length, value); }
    TableParams &dim(uint32_t value) { return set(params_.dim, value); }
    TableParams &row_length(uint64_t value) { return set(params_.row_length, value); }
    TableParams &consistency(Consistency value) { return set(params_.consistency, value); }
    TableParams &staleness(uint32_t value) { return set(params_.staleness, value); }
    TableParams &quorum(uint32_t value) { return set(params_.quorum, value); }
    TableParams &reproducible(bool value = true) { return set(params_.reproducible, value); }
    TableParams &aggregate(Op value) { return set(params_.aggregate, value); }
    TableParams &compensation(double value) {
        return give(params_.compensation, value, DTRAIN_GIVEN_COMPENSATION);
    }
    TableParams &initial(double value) { return set(params_.initial, value); }
    TableParams &distribution(Initial value) { return set(params_.distribution, value); }
    TableParams &spread(double value) { return set(params_.spread, value); }
    TableParams &seed(uint64_t value) { return set(params_.seed, value); }
    TableParams &max_bytes(uint64_t value) { return set(params_.max_bytes, value); }
    TableParams &storage_dtype(DType value) { return set(params_.storage_dtype, value); }
    TableParams &wire_dtype(DType value) { return set(params_.wire_dtype, value); }
    TableParams &not_finite(NotFinite value) { return set(params_.not_finite, value); }
    TableParams &steps(Steps value) { return set(params_.steps, value); }
    TableParams &mean_over(MeanOver value) { return set(params_.mean_over, value); }
    TableParams &schedule(Schedule value) { return set(params_.schedule, value); }
    TableParams &warmup_steps(uint64_t value) { return set(params_.warmup_steps, value); }
    TableParams &decay_steps(uint64_t value) { return set(params_.decay_steps, value); }
    TableParams &decay(double value) { return set(params_.decay, value); }
    TableParams &memory(TableMemory value) { return set(params_.memory, value); }
    TableParams &placement(Placement value) { return set(params_.placement, value); }
    TableParams &placement_block(uint64_t value) { return set(params_.placement_block, value); }
    TableParams &virtual_nodes(uint32_t value) { return set(params_.virtual_nodes, value); }
    TableParams &key_count(uint64_t value) { return set(params_.key_count, value); }
    TableParams &split_bytes(uint64_t value) { return set(params_.split_bytes, value); }
    // The servers' function of this name; also sets Rule::FUNCTION.
    TableParams &function(std::string name) {
        function_ = std::move(name);
        return rule(Rule::FUNCTION);
    }
    TableParams &segment(const Segment &value) {
        segments_.push_back(value.raw());
        return *this;
    }
    TableParams &weights(std::vector<uint32_t> values) {
        weights_ = std::move(values);
        return *this;
    }
    // Also sets Placement::USER. If it throws, Communicator::table() throws its error with the
    // exception nested in it.
    TableParams &place(PlaceFunction function) {
        place_ = std::move(function);
        return placement(Placement::USER);
    }

  private:
    friend class Communicator;
    std::string function_;
    std::vector<dtrain_segment_t> segments_;
    std::vector<uint32_t> weights_;
    PlaceFunction place_;
};

// Dense tables: operations apply to as many values as the array has, from `first` on. Sparse
// tables: to the rows of the keys; the array holds the rows one after the other.
template <class Way> class TableOperations {
  public:
    using Done = typename Way::Done;   // void, or a Request
    using Found = typename Way::Found; // a Result, or a Request
    using Keys = Span<const uint64_t>;

    TableOperations(Way way, std::shared_ptr<dtrain_table_t> table, DType dtype, uint32_t dim)
        : way_(std::move(way)), table_(std::move(table)), dtype_(dtype), dim_(dim) {}

    // Pushes values to the table's rule.
    Found push(Input values, uint64_t first = 0) const {
        return range("push", dtrain_table_push, values, first);
    }
    // Reads values.
    Found pull(Output out, uint64_t first = 0) const {
        return range("pull", dtrain_table_pull, out, first);
    }
    // Pushes and pulls in one round trip. Under BSP this also ends the worker's clock.
    Found push_pull(Output values, uint64_t first = 0) const {
        return push_pull(values, values, first);
    }
    Found push_pull(Input values, Output out, uint64_t first = 0) const {
        of_table("push_pull", values);
        detail::fits("push_pull", values.count, dtype_, out);
        return way_.find([&](auto params, auto request) {
            return dtrain_table_push_pull(table(), first, values.count, values.data, out.data,
                                          params, request);
        });
    }
    // Overwrites values, whatever the rule and the clock.
    Found set(Input values, uint64_t first = 0) const {
        return range("set", dtrain_table_set, values, first);
    }

    Found push_rows(Keys keys, Input values) const {
        return rows("push_rows", dtrain_table_push_rows, keys, values);
    }
    Found pull_rows(Keys keys, Output out) const {
        return rows("pull_rows", dtrain_table_pull_rows, keys, out);
    }
    Found push_pull_rows(Keys keys, Output values) const {
        return push_pull_rows(keys, values, values);
    }
    Found push_pull_rows(Keys keys, Input values, Output out) const {
        of_rows("push_pull_rows", keys, values);
        of_rows("push_pull_rows", keys, out);
        return way_.find([&](auto params, auto request) {
            return dtrain_table_push_pull_rows(table(), keys.data(), keys.size(), values.data,
                                               out.data, params, request);
        });
    }
    Found set_rows(Keys keys, Input values) const {
        return rows("set_rows", dtrain_table_set_rows, keys, values);
    }
    // Drops rows and their state.
    Done erase_rows(Keys keys) const {
        return way_.run([&](auto params, auto request) {
            return dtrain_table_erase_rows(table(), keys.data(), keys.size(), params, request);
        });
    }
    // count = the number of rows on all servers, when it is done
    Done count_rows(uint64_t &count) const {
        return way_.run([&](auto params, auto request) {
            return dtrain_table_count_rows(table(), &count, params, request);
        });
    }
    // Ends this worker's clock; its pushes so far belong to that clock.
    Done clock() const {
        return way_.run([&](auto params, auto request) {
            return dtrain_table_clock(table(), params, request);
        });
    }
    // Replaces the learning rate.
    Done set_rate(double rate) const {
        return way_.run([&](auto params, auto request) {
            return dtrain_table_set_rate(table(), rate, params, request);
        });
    }
    // Says how often the table was updated before: the next update is number count + 1.
    Done set_updates(uint64_t count) const {
        return way_.run([&](auto params, auto request) {
            return dtrain_table_set_updates(table(), count, params, request);
        });
    }
    // Pulls or sets numbers of a state array of the rule (Table::states()), from `first` on.
    Found pull_state(uint32_t index, Output out, uint64_t first = 0) const {
        of_state("pull_state", index, out);
        return way_.find([&](auto params, auto request) {
            return dtrain_table_pull_state(table(), index, first, out.count, out.data, params,
                                           request);
        });
    }
    Found set_state(uint32_t index, Input values, uint64_t first = 0) const {
        of_state("set_state", index, values);
        return way_.find([&](auto params, auto request) {
            return dtrain_table_set_state(table(), index, first, values.count, values.data, params,
                                          request);
        });
    }
    // Pulls or sets the state of the rows of keys.
    Found pull_state_rows(uint32_t index, Keys keys, Output out) const {
        of_keys("pull_state_rows", keys, of_state("pull_state_rows", index, out), out);
        return way_.find([&](auto params, auto request) {
            return dtrain_table_pull_state_rows(table(), index, keys.data(), keys.size(), out.data,
                                                params, request);
        });
    }
    Found set_state_rows(uint32_t index, Keys keys, Input values) const {
        of_keys("set_state_rows", keys, of_state("set_state_rows", index, values), values);
        return way_.find([&](auto params, auto request) {
            return dtrain_table_set_state_rows(table(), index, keys.data(), keys.size(),
                                               values.data, params, request);
        });
    }
    // set_ready() declares the table initialized, usually on one worker; wait_ready() waits for
    // that.
    Done set_ready() const {
        return way_.run([&](auto params, auto request) {
            return dtrain_table_set_ready(table(), params, request);
        });
    }
    Done wait_ready() const {
        return way_.run([&](auto params, auto request) {
            return dtrain_table_wait_ready(table(), params, request);
        });
    }

  protected:
    dtrain_table_t *table() const noexcept { return table_.get(); }
    template <class NewWay> TableOperations<NewWay> by(NewWay way) const {
        return TableOperations<NewWay>(std::move(way), table_, dtype_, dim_);
    }
    Way way_;
    std::shared_ptr<dtrain_table_t> table_;
    DType dtype_;
    uint32_t dim_;

  private:
    template <class Call, class Array>
    Found range(const char *name, Call call, const Array &array, uint64_t first) const {
        of_table(name, array);
        return way_.find([&](auto params, auto request) {
            return call(table(), first, array.count, array.data, params, request);
        });
    }
    template <class Call, class Array>
    Found rows(const char *name, Call call, Keys keys, const Array &array) const {
        of_rows(name, keys, array);
        return way_.find([&](auto params, auto request) {
            return call(table(), keys.data(), keys.size(), array.data, params, request);
        });
    }
    template <class Array> void of_table(const char *name, const Array &array) const {
        of_type(name, "table", dtype_, array);
    }
    template <class Array> void of_rows(const char *name, Keys keys, const Array &array) const {
        of_table(name, array);
        if (dim_ != 0) of_keys(name, keys, dim_, array);
    }
    // The number of numbers in the state array; for a sparse table, in each row.
    template <class Array>
    uint64_t of_state(const char *name, uint32_t index, const Array &array) const {
        const char *text = nullptr;
        uint32_t dtype = 0;
        uint64_t count = 0;
        detail::check(dtrain_table_describe_state(table(), index, &text, &dtype, &count));
        of_type(name, text, static_cast<DType>(dtype), array);
        return count;
    }
    template <class Array>
    static void of_type(const char *name, const char *what, DType dtype, const Array &array) {
        if (array.dtype != dtype)
            throw InvalidError(std::string(name) + ": the " + what + " is of " +
                               detail::text(dtype) + ", the array of " + detail::text(array.dtype));
    }
    template <class Array>
    static void of_keys(const char *name, Keys keys, uint64_t width, const Array &array) {
        if (array.count / width != keys.size() || array.count % width != 0)
            throw InvalidError(std::string(name) + ": " + std::to_string(keys.size()) +
                               " rows are " + std::to_string(keys.size() * width) +
                               " elements, not " + std::to_string(array.count));
    }
};

// A state array of the rule. count: its numbers; for a sparse table, per row.
struct State {
    uint32_t index;
    std::string name;
    DType dtype;
    uint64_t count;
};

// Made by Communicator::table(). start() offers the operations with requests, with() with
// parameters.
class Table : public TableOperations<detail::Blocking> {
  public:
    using TableOperations::TableOperations;
    Table(Table &&) = default;
    Table &operator=(Table &&) = default;

    TableOperations<detail::Started> start() const { return by(detail::Started{way_}); }
    TableOperations<detail::Blocking> with(const OpParams &params) const {
        return by(detail::Blocking{detail::Way{way_.comm, false, params}});
    }
    TableOperations<detail::Started> start(const OpParams &params) const {
        return by(detail::Started{detail::Way{way_.comm, false, params}});
    }
    // Changes consistency, staleness, quorum and reproducible. Collective. `over` is the job's own
    // communicator, or the one that shrink() made of it.
    template <class Comm> void set_consistency(const Comm &over, const TableParams &params) const {
        detail::check(dtrain_table_set_consistency(over.handle(), table(), &params.raw(), nullptr));
    }
    std::vector<State> states() const {
        std::vector<State> found;
        for (;;) {
            const char *name = nullptr;
            uint32_t dtype = 0;
            uint64_t count = 0;
            const auto index = static_cast<uint32_t>(found.size());
            const Status status =
                dtrain_table_describe_state(table(), index, &name, &dtype, &count);
            if (status == DTRAIN_ERR_NOT_FOUND) return found;
            detail::check(status);
            found.push_back(State{index, name, static_cast<DType>(dtype), count});
        }
    }
    // The numbers of the servers that hold these elements, or keys.
    std::vector<uint32_t> locate(Keys items) const {
        std::vector<uint32_t> servers(items.size());
        detail::check(dtrain_table_locate(table(), items.data(), items.size(), servers.data()));
        return servers;
    }
    // What each server holds of the table.
    std::vector<dtrain_table_server_t> servers() const {
        std::vector<dtrain_table_server_t> found;
        for (;;) {
            dtrain_table_server_t server;
            DTRAIN_INIT(&server);
            const Status status =
                dtrain_table_describe_server(table(), static_cast<uint32_t>(found.size()), &server);
            if (status == DTRAIN_ERR_NOT_FOUND) return found;
            detail::check(status);
            found.push_back(server);
        }
    }
    // Counts of this worker's requests to one server, or to all (-1).
    dtrain_table_stats_t stats(int server = -1) const {
        dtrain_table_stats_t stats;
        DTRAIN_INIT(&stats);
        detail::check(dtrain_stats_table(table(), server, &stats));
        return stats;
    }
    // The step of the checkpoint that the table was restored from (option checkpoint.restore).
    std::optional<uint64_t> restored() const { return step_of(dtrain_table_restored); }
    // The step of the newest complete checkpoint that has the table.
    std::optional<uint64_t> newest_checkpoint() const { return step_of(dtrain_checkpoint_newest); }
    dtrain_table_t *handle() const noexcept { return table(); }

  private:
    template <class Call> std::optional<uint64_t> step_of(Call call) const {
        uint64_t step = 0;
        const Status status = call(table(), &step);
        if (status == DTRAIN_ERR_NOT_FOUND) return std::nullopt;
        detail::check(status);
        return step;
    }
};

using Tables = std::vector<std::reference_wrapper<const Table>>;

namespace detail {
inline std::vector<dtrain_table_t *> handles(const Tables &tables) {
    std::vector<dtrain_table_t *> found;
    for (const Table &table : tables) found.push_back(table.handle());
    return found;
}
} // namespace detail

// Writes tables to the folder of the option checkpoint.directory. Called by one worker. Returns
// false if no checkpoint was due by the every_steps and every_ns of params.
inline bool save_checkpoint(const Tables &tables, uint64_t step,
                            const dtrain_checkpoint_params_t *params = nullptr) {
    const auto all = detail::handles(tables);
    int32_t saved = 0;
    detail::check(dtrain_checkpoint_save(all.data(), static_cast<uint32_t>(all.size()), step,
                                         params, &saved));
    return saved != 0;
}

// Restores tables from a checkpoint, by default the newest. Called by one worker. Returns its step.
inline uint64_t restore_checkpoint(const Tables &tables, uint64_t step = DTRAIN_CHECKPOINT_NEWEST,
                                   const dtrain_checkpoint_params_t *params = nullptr) {
    const auto all = detail::handles(tables);
    uint64_t found = 0;
    detail::check(dtrain_checkpoint_restore(all.data(), static_cast<uint32_t>(all.size()), step,
                                            params, &found));
    return found;
}

// Waits until the newest checkpoint that has all tables is not that of the step `after`, and
// returns its step; the timeout is in params. For an evaluator, which then restores it.
inline uint64_t wait_checkpoint(const Tables &tables, uint64_t after = DTRAIN_CHECKPOINT_NEWEST,
                                const dtrain_checkpoint_params_t *params = nullptr) {
    const auto all = detail::handles(tables);
    uint64_t found = 0;
    detail::check(dtrain_checkpoint_wait(all.data(), static_cast<uint32_t>(all.size()), after,
                                         params, &found));
    return found;
}

// TableParams::weights() for `dedicated` servers followed by `serving` workers that serve. They
// minimize the load of the busiest link.
inline std::vector<uint32_t> server_weights(uint32_t workers, uint32_t dedicated,
                                            uint32_t serving) {
    std::vector<uint32_t> weights(size_t{dedicated} + serving);
    detail::check(dtrain_server_weights(workers, dedicated, serving, weights.data()));
    return weights;
}

} // namespace cxx
} // namespace dtrain
#endif

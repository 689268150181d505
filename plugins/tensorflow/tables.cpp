// Ops on tables of the parameter server: pushes, pulls and clocks, of ranges of dense tables and of
// rows of sparse ones. Each is a row of a template: the same checks, then one call of the library.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/group.h"
#include "tensorflow/op.h"
#include <cstring>

namespace dtrain::tensorflow {

namespace {

// What an op does: reads and writes values, of rows or of a range.
enum : unsigned { pushes = 1, pulls = 2, rows = 4, overwrites = 8 };

dtrain_table_t *table_of(const Use &use) { return static_cast<dtrain_table_t *>(use->handle); }

// The calls, by what they do.
dtrain_status_t run_range(dtrain_table_t *table, unsigned does, uint64_t first, uint64_t count,
                          const void *in, void *out, const dtrain_op_params_t *params) {
    switch (does & ~rows) {
    case pushes: return dtrain_table_push(table, first, count, in, params, nullptr);
    case pulls: return dtrain_table_pull(table, first, count, out, params, nullptr);
    case pushes | pulls:
        return dtrain_table_push_pull(table, first, count, in, out, params, nullptr);
    default: return dtrain_table_set(table, first, count, in, params, nullptr);
    }
}
dtrain_status_t run_rows(dtrain_table_t *table, unsigned does, const uint64_t *keys, uint64_t count,
                         const void *in, void *out, const dtrain_op_params_t *params) {
    switch (does & ~rows) {
    case pushes: return dtrain_table_push_rows(table, keys, count, in, params, nullptr);
    case pulls: return dtrain_table_pull_rows(table, keys, count, out, params, nullptr);
    case pushes | pulls:
        return dtrain_table_push_pull_rows(table, keys, count, in, out, params, nullptr);
    default: return dtrain_table_set_rows(table, keys, count, in, params, nullptr);
    }
}

template <unsigned does> class TableOp {
  public:
    explicit TableOp(Construction &construction) : target_(construction) {
        if constexpr ((does & rows) == 0) first_ = construction.number("first");
        if constexpr (does == pulls) shape_ = construction.numbers("shape");
    }

    void run(Call &call) {
        const Use use(target_.entry);
        const std::string what = std::string(name()) + " table \"" + target_.entry.name() + "\"";
        if (!check_kind(call, target_, use, Kind::table, what)) return;
        const bool sparse = use->width > 0;
        if (sparse != ((does & rows) != 0)) {
            call.fail(Code::invalid_argument,
                      "dtrain: " + what + ": the table is " +
                          (sparse ? "sparse: use keys" : "dense: it has no keys"));
            return;
        }
        Tensor keys, values, result;
        int next = 0;
        if ((does & rows) != 0 && !call.input(next++, keys)) return;
        if ((does & (pushes | overwrites)) != 0 && !call.input(next, values)) return;
        const Type *type = find_dtype(use->dtype);
        if (type == nullptr)
            return (void)call.fail(Code::internal, "dtrain: " + what + ": unknown dtype");
        if (values.type != nullptr && !check_values(call, what, use, *type, keys, values)) return;
        if ((does & pulls) != 0) {
            std::vector<int64_t> shape = values.shape;
            if (does == pulls) shape = shape_;
            if (does == (pulls | rows)) {
                shape = keys.shape;
                shape.push_back(static_cast<int64_t>(use->width));
            }
            if (!call.output(0, *type, shape, result)) return;
        }
        (void)run_call(call, use, what, keys, values, result);
    }

  private:
    static const char *name() {
        constexpr const char *names[] = {"", "push to", "pull from", "push to and pull from"};
        return (does & overwrites) != 0 ? "set in" : names[does & (pushes | pulls)];
    }

    static bool check_values(Call &call, const std::string &what, const Use &use, const Type &type,
                             const Tensor &keys, const Tensor &values) {
        const std::string begin = "dtrain: " + what + ": " + values.describe();
        if (values.type != &type)
            return call.fail(Code::invalid_argument, begin + " for a table of " + type.name);
        if ((does & rows) != 0 && values.elements != keys.elements * use->width)
            return call.fail(Code::invalid_argument, begin + " for keys " + keys.describe() +
                                                         " and rows of " +
                                                         std::to_string(use->width) + " elements");
        return true;
    }

    bool run_call(Call &call, const Use &use, const std::string &what, const Tensor &keys,
                  const Tensor &values, const Tensor &result) const {
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.timeout_ns = target_.timeout;
        dtrain_status_t status = DTRAIN_OK;
        if constexpr ((does & rows) != 0) {
            if (keys.elements > 0)
                status = run_rows(table_of(use), does, static_cast<const uint64_t *>(keys.data),
                                  keys.elements, values.data, result.data, &params);
        } else {
            const uint64_t count = (does & pulls) != 0 ? result.elements : values.elements;
            status = run_range(table_of(use), does, static_cast<uint64_t>(first_), count,
                               values.data, result.data, &params);
        }
        return status >= 0 || call.fail(status, what);
    }

    const Target target_;
    int64_t first_ = 0;
    std::vector<int64_t> shape_;
};

class Clock {
  public:
    explicit Clock(Construction &construction) : target_(construction) {}
    void run(Call &call) {
        const Use use(target_.entry);
        const std::string what = "clock of table \"" + target_.entry.name() + "\"";
        if (!check_kind(call, target_, use, Kind::table, what)) return;
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.timeout_ns = target_.timeout;
        const dtrain_status_t status = dtrain_table_clock(table_of(use), &params, nullptr);
        if (status < 0) call.fail(status, what);
    }

  private:
    const Target target_;
};

constexpr const char *values_type =
    "T: {half, bfloat16, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}";
constexpr const char *keys_input = "keys: int64", *values_input = "values: T",
                     *values_output = "pulled: T", *first = "first: int = 0",
                     *shape = "shape: list(int)";

} // namespace

std::vector<Definition> table_ops() {
    return {
        define<TableOp<pushes>>("DtrainPush", {values_input}, {}, {values_type, first},
                                unknown_shapes),
        define<TableOp<pulls>>("DtrainPull", {}, {values_output}, {values_type, first, shape},
                               unknown_shapes),
        define<TableOp<pushes | pulls>>("DtrainPushPull", {values_input}, {values_output},
                                        {values_type, first}, same_shapes),
        define<TableOp<overwrites>>("DtrainSet", {values_input}, {}, {values_type, first},
                                    unknown_shapes),
        define<TableOp<pushes | rows>>("DtrainPushRows", {keys_input, values_input}, {},
                                       {values_type}, unknown_shapes),
        define<TableOp<pulls | rows>>("DtrainPullRows", {keys_input}, {values_output},
                                      {values_type}, unknown_shapes),
        define<TableOp<pushes | pulls | rows>>("DtrainPushPullRows", {keys_input, values_input},
                                               {values_output}, {values_type}, unknown_shapes),
        define<TableOp<overwrites | rows>>("DtrainSetRows", {keys_input, values_input}, {},
                                           {values_type}, unknown_shapes),
        define<Clock>("DtrainClock", {}, {}, {}, unknown_shapes),
    };
}

} // namespace dtrain::tensorflow

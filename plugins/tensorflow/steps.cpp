// DtrainStep: one step of an optimizer whose values and rule live in tables: pushes the gradients
// of all variables and pulls their new values, in one op. A table holds the variables given to it
// one after another; all tables' requests are on their way at the same time.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/group.h"
#include "tensorflow/op.h"
#include "tensorflow/packs.h"
#include <cstring>
#include <deque>

namespace dtrain::tensorflow {

namespace {

// A table in one run of the op.
struct Part {
    explicit Part(Entry &of) : entry(of), use(of) {}
    Entry &entry;
    const Use use;
    Piece piece;
    dtrain_request_t *request = nullptr;
};

class Step {
  public:
    explicit Step(Construction &construction)
        : tables_(construction.texts("tables")), members_(construction.numbers("members")),
          timeout_(construction.number("timeout")) {}

    void run(Call &call) {
        std::vector<Tensor> gradients, values(static_cast<size_t>(call.inputs()));
        if (!call.input(0, call.inputs(), gradients)) return;
        for (size_t i = 0; i < values.size(); i++)
            if (!call.output_like(static_cast<int>(i), static_cast<int>(i), gradients[i],
                                  values[i]))
                return;
        std::deque<Part> parts;
        size_t next = 0;
        bool good = check_members(call, gradients.size());
        for (size_t i = 0; i < tables_.size() && good; i++) {
            parts.emplace_back(entry_of(tables_[i]));
            for (int64_t member = 0; member < members_[i]; member++, next++) {
                parts.back().piece.members.push_back(next);
                parts.back().piece.numbers += gradients[next].numbers();
            }
            good = start(call, parts.back(), gradients);
        }
        for (Part &part : parts) { // waits in any case: the requests use this op's memory
            if (part.request != nullptr) {
                const dtrain_status_t status = dtrain_request_wait(part.request, -1);
                if (status < 0 && good) good = call.fail(status, what(part), part.request);
                dtrain_request_free(part.request);
            }
            if (good) scatter_piece(part.piece, values);
            part.entry.give_back(std::move(part.piece.block));
        }
    }

  private:
    static std::string what(const Part &part) {
        return "step of table \"" + part.entry.name() + "\"";
    }

    bool check_members(Call &call, size_t inputs) const {
        int64_t sum = 0;
        for (const int64_t count : members_) sum += count < 0 ? INT32_MAX : count;
        return (members_.size() == tables_.size() && sum == static_cast<int64_t>(inputs)) ||
               call.fail(Code::invalid_argument, "dtrain: step: tables and members do not fit to " +
                                                     std::to_string(inputs) + " gradients");
    }

    bool start(Call &call, Part &part, std::span<const Tensor> gradients) const {
        if (!check_object(call, part.entry, part.use, Kind::table, what(part))) return false;
        for (const size_t member : part.piece.members)
            if (gradients[member].type->dtype != part.use->dtype)
                return call.fail(Code::invalid_argument,
                                 "dtrain: " + what(part) + ": a gradient is " +
                                     gradients[member].describe() + ", and the table " +
                                     find_dtype(part.use->dtype)->name);
        part.piece.block = part.entry.take(part.piece.numbers * dtrain_dtype_size(part.use->dtype));
        gather_piece(part.piece, gradients);
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.timeout_ns = timeout_;
        void *block = part.piece.block.bytes.get();
        const dtrain_status_t status =
            dtrain_table_push_pull(static_cast<dtrain_table_t *>(part.use->handle), 0,
                                   part.piece.numbers, block, block, &params, &part.request);
        return status >= 0 || call.fail(status, what(part));
    }

    const std::vector<std::string> tables_;
    const std::vector<int64_t> members_; // variables of each table
    const int64_t timeout_;
};

} // namespace

Definition step() {
    return define<Step>("DtrainStep", {"gradients: N * T"}, {"values: N * T"},
                        {"T: {float, double, half, bfloat16}", "N: int >= 1",
                         "tables: list(string) >= 1", "members: list(int) >= 1"},
                        same_shapes);
}

} // namespace dtrain::tensorflow

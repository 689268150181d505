// DtrainSubmit: reduces named tensors by a gradient queue. Ranks may run these ops in any order:
// the queue finds out which names are ready everywhere.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/claims.h"
#include "tensorflow/op.h"

namespace dtrain::tensorflow {

namespace {

class Submit {
  public:
    explicit Submit(Construction &construction)
        : target_(construction), names_(construction.texts("names")),
          op_(static_cast<uint32_t>(construction.number("op"))),
          priority_(static_cast<int32_t>(construction.number("priority"))),
          members_(construction.text("members")), note_(construction.text("note")) {}

    void run(Call &call) {
        const Use use(target_.entry);
        const std::string what = std::string("named all-reduce (") + op_name(op_) + ")";
        if (!check_kind(call, target_, use, Kind::gradients, what)) return;
        std::vector<Tensor> tensors;
        if (!call.input(0, call.inputs(), tensors)) return;
        if (names_.size() != tensors.size()) {
            call.fail(Code::invalid_argument,
                      "dtrain: " + what + ": " + std::to_string(tensors.size()) + " tensors have " +
                          std::to_string(names_.size()) + " names");
            return;
        }
        for (const Tensor &tensor : tensors)
            if (!reduces(*tensor.type, op_)) {
                call.fail(Code::unimplemented,
                          "dtrain: " + what + " of " + tensor.describe() +
                              ": complex numbers have a sum and an average only");
                return;
            }
        std::vector<Tensor> results(tensors.size());
        for (size_t i = 0; i < tensors.size(); i++)
            if (!call.output_like(static_cast<int>(i), static_cast<int>(i), tensors[i], results[i]))
                return;
        if (!members_.empty() && !compare(call, use, what, tensors)) return;
        Submissions submissions(call, use, target_, priority_);
        for (size_t i = 0; i < tensors.size(); i++) {
            const Tensor &tensor = tensors[i];
            if (tensor.elements == 0) continue;
            const bool last = i + 1 == tensors.size();
            if (!submissions.add(of(what, names_[i], tensor), names_[i], tensor.data,
                                 results[i].data, tensor.numbers(), tensor.type->dtype, op_, last))
                return;
        }
        (void)submissions.wait();
    }

  private:
    std::string of(const std::string &what, const std::string &name, const Tensor &tensor) const {
        return what + " of \"" + name + "\", " + tensor.describe() + ", queue \"" +
               target_.entry.name() + "\"";
    }

    bool compare(Call &call, const Use &use, const std::string &what,
                 std::span<const Tensor> tensors) const {
        Entry &members = entry_of(members_);
        const Use of_members(members);
        if (!check_object(call, members, of_members, Kind::communicator, what)) return false;
        std::vector<Claim> claims;
        for (size_t i = 0; i < tensors.size(); i++) {
            std::string text = tensors[i].describe() + ", " + op_name(op_);
            if (!note_.empty()) text += ", " + note_;
            claims.push_back({names_[i], std::move(text), of(what, names_[i], tensors[i])});
        }
        auto *const comm = static_cast<dtrain_comm_t *>(of_members->handle);
        return compare_claims(call, use, target_, dtrain_comm_rank(comm), dtrain_comm_size(comm),
                              op_, claims);
    }

    const Target target_;
    const std::vector<std::string> names_;
    const uint32_t op_;
    const int32_t priority_;
    // The name of the communicator of the queue's ranks: then shapes are compared, too, when a name
    // is new or its tensor has changed, and errors have both sides. "": only numbers of elements.
    const std::string members_;
    const std::string note_; // what else must be equal on all ranks
};

constexpr const char *submitted_types = "T: list({" DTRAIN_TENSORFLOW_NUMBERS "}) >= 1";

} // namespace

Definition submit() {
    return define<Submit>("DtrainSubmit", {"tensors: T"}, {"reduced: T"},
                          {submitted_types, "names: list(string) >= 1", "op: int",
                           "priority: int = 0", "members: string = ''", "note: string = ''"},
                          same_shapes);
}

} // namespace dtrain::tensorflow

// DtrainSubmit: reduces named tensors by a gradient queue. Ranks may run these ops in any order:
// the queue finds out which names are ready everywhere.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/group.h"
#include "tensorflow/op.h"

namespace dtrain::tensorflow {

namespace {

class Submit {
  public:
    explicit Submit(Construction &construction)
        : target_(construction), names_(construction.texts("names")),
          op_(static_cast<uint32_t>(construction.number("op"))),
          priority_(static_cast<int32_t>(construction.number("priority"))) {}

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
        std::vector<dtrain_request_t *> requests(tensors.size(), nullptr);
        bool good = true;
        for (size_t i = 0; i < tensors.size() && good; i++)
            good = submit(call, use, what, names_[i], tensors[i], results[i], &requests[i]);
        for (size_t i = 0; i < requests.size(); i++) {
            if (requests[i] == nullptr) continue;
            const dtrain_status_t status = dtrain_request_wait(requests[i], -1);
            if (status < 0 && good)
                good = call.fail(status, of(what, names_[i], tensors[i]), requests[i]);
            dtrain_request_free(requests[i]);
        }
    }

  private:
    std::string of(const std::string &what, const std::string &name, const Tensor &tensor) const {
        return what + " of \"" + name + "\", " + tensor.describe() + ", queue \"" +
               target_.entry.name() + "\"";
    }

    bool submit(Call &call, const Use &use, const std::string &what, const std::string &name,
                const Tensor &tensor, const Tensor &result, dtrain_request_t **request_p) const {
        if (tensor.elements == 0) return true;
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.timeout_ns = target_.timeout;
        params.priority = priority_;
        const dtrain_status_t status = dtrain_gradients_submit(
            static_cast<dtrain_gradients_t *>(use->handle), name.c_str(), tensor.data, result.data,
            tensor.numbers(), tensor.type->dtype, op_, &params, request_p);
        return status >= 0 || call.fail(status, of(what, name, tensor));
    }

    const Target target_;
    const std::vector<std::string> names_;
    const uint32_t op_;
    const int32_t priority_;
};

} // namespace

Definition submit() {
    return define<Submit>("DtrainSubmit", {"tensors: T"}, {"reduced: T"},
                          {"T: list({" DTRAIN_TENSORFLOW_NUMBERS "}) >= 1",
                           "names: list(string) >= 1", "op: int", "priority: int = 0"},
                          same_shapes);
}

} // namespace dtrain::tensorflow

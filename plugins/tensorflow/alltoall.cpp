// DtrainAlltoall: sends some rows (slices of the first dimension) of a tensor to each rank, and
// puts those that it gets after each other, in the order of ranks.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/group.h"
#include "tensorflow/op.h"

namespace dtrain::tensorflow {

namespace {

class Alltoall {
  public:
    explicit Alltoall(Construction &construction) : target_(construction) {}

    void run(Call &call) {
        const Use use(target_.entry);
        const std::string what = "all-to-all";
        if (!check_kind(call, target_, use, Kind::communicator, what)) return;
        Tensor tensor, splits;
        if (!call.input(0, tensor) || !call.input(1, splits)) return;
        Group group(call, target_, use, what + " of " + tensor.describe());
        Tensor rows = tensor;
        if (!rows.shape.empty()) rows.shape[0] = -1;
        std::vector<int64_t> send;
        const std::string problem = divide(group, tensor, splits, send);
        // A rank with a wrong argument differs from the others, so all of them get its text.
        if (!group.agree(what + " of " + rows.describe() + (problem.empty() ? "" : ": " + problem)))
            return;
        if (!problem.empty()) {
            group.fail(Code::invalid_argument, problem);
            return;
        }
        Tensor received;
        if (!call.output(1, *find_dtype(DTRAIN_I64), {group.size()}, received)) return;
        auto *const recv = static_cast<int64_t *>(received.data);
        if (!group.post(true, [&](dtrain_op_params_t *params, dtrain_request_t **request_p) {
                return dtrain_alltoall(group.comm(), send.data(), recv, 1, DTRAIN_I64, params,
                                       request_p);
            }))
            return;
        std::vector<int64_t> shape = tensor.shape;
        shape[0] = sum_of_rows({recv, send.size()}); // output() refuses -1
        Tensor result;
        if (!call.output(0, *tensor.type, shape, result)) return;
        const uint64_t width = tensor.row() * tensor.type->parts;
        std::vector<uint64_t> sent, got;
        for (size_t rank = 0; rank < send.size(); rank++) {
            sent.push_back(static_cast<uint64_t>(send[rank]) * width);
            got.push_back(static_cast<uint64_t>(recv[rank]) * width);
        }
        if (width == 0) return;
        (void)group.post(true, [&](dtrain_op_params_t *params, dtrain_request_t **request_p) {
            return dtrain_alltoallv(group.comm(), tensor.data, sent.data(), nullptr, result.data,
                                    got.data(), nullptr, tensor.type->dtype, params, request_p);
        });
    }

  private:
    // The rows for each rank: those given, or equal parts. Returns what is wrong, or an empty text.
    static std::string divide(const Group &group, const Tensor &tensor, const Tensor &splits,
                              std::vector<int64_t> &send) {
        if (tensor.shape.empty()) return "a scalar has no rows to be sent";
        const int64_t ranks = group.size();
        if (splits.elements == 0) {
            if (tensor.shape[0] % ranks != 0)
                return "the rows of " + tensor.describe() + " are no multiple of " +
                       std::to_string(ranks) + " ranks; give splits";
            send.assign(static_cast<size_t>(ranks), tensor.shape[0] / ranks);
            return "";
        }
        const std::string begin = "splits: ";
        if (splits.elements != static_cast<uint64_t>(ranks))
            return begin + std::to_string(splits.elements) + " numbers for " +
                   std::to_string(ranks) + " ranks";
        const auto *const given = static_cast<const int64_t *>(splits.data);
        send.assign(given, given + ranks);
        int64_t sum = 0;
        for (const int64_t part : send) {
            if (part < 0 || part > tensor.shape[0] - sum)
                return begin + std::to_string(part) + " does not fit into " + tensor.describe();
            sum += part;
        }
        return sum == tensor.shape[0] ? ""
                                      : begin + "their sum is " + std::to_string(sum) +
                                            ", not that of " + tensor.describe();
    }

    const Target target_;
};

} // namespace

Definition alltoall() {
    return define<Alltoall>("DtrainAlltoall", {"tensor: T", "splits: int64"},
                            {"exchanged: T", "received: int64"},
                            {"T: {" DTRAIN_TENSORFLOW_TYPES "}"}, unknown_shapes);
}

} // namespace dtrain::tensorflow

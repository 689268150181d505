// DtrainAllgather: puts the rows (slices of the first dimension) of all ranks after each other, for
// a list of tensors whose ranks may have different numbers of rows.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/group.h"
#include "tensorflow/op.h"

namespace dtrain::tensorflow {

namespace {

// What must be equal on all ranks: all dimensions but the first.
std::string signature_of_rows(std::span<const Tensor> tensors) {
    std::string text;
    for (Tensor tensor : tensors) {
        if (!tensor.shape.empty()) tensor.shape[0] = -1;
        text += (text.empty() ? "" : ", ") + tensor.describe();
    }
    return text;
}

class Allgather {
  public:
    explicit Allgather(Construction &construction) : target_(construction) {}

    void run(Call &call) {
        const Use use(target_.entry);
        const std::string what = "all-gather";
        if (!check_kind(call, target_, use, Kind::communicator, what)) return;
        std::vector<Tensor> tensors;
        if (!call.input(0, call.inputs(), tensors)) return;
        Group group(call, target_, use, what + " of " + describe(tensors));
        if (!group.agree(what + " of " + signature_of_rows(tensors))) return;
        for (const Tensor &tensor : tensors)
            if (tensor.shape.empty()) {
                group.fail(Code::invalid_argument, "a scalar has no rows to be gathered; use [x]");
                return;
            }
        const auto ranks = static_cast<size_t>(group.size());
        Tensor rows; // [tensors, ranks]
        if (!call.output(call.inputs(), *find_dtype(DTRAIN_I64),
                         {static_cast<int64_t>(tensors.size()), group.size()}, rows))
            return;
        auto *const table = static_cast<int64_t *>(rows.data);
        if (!exchange_rows(group, tensors, table)) return;
        std::vector<std::vector<uint64_t>> counts(tensors.size(), std::vector<uint64_t>(ranks));
        for (size_t i = 0; i < tensors.size(); i++) {
            Tensor result;
            if (!gather(call, group, static_cast<int>(i), tensors[i], table + i * ranks, counts[i],
                        result))
                break;
        }
        (void)group.wait();
    }

  private:
    static bool exchange_rows(Group &group, std::span<const Tensor> tensors, int64_t *table) {
        const auto ranks = static_cast<size_t>(group.size());
        std::vector<int64_t> mine, all(tensors.size() * ranks);
        for (const Tensor &tensor : tensors) mine.push_back(tensor.shape[0]);
        const bool good =
            group.post(true, [&](dtrain_op_params_t *params, dtrain_request_t **request_p) {
                return dtrain_allgather(group.comm(), mine.data(), all.data(), mine.size(),
                                        DTRAIN_I64, params, request_p);
            });
        for (size_t rank = 0; good && rank < ranks; rank++)
            for (size_t i = 0; i < tensors.size(); i++)
                table[i * ranks + rank] = all[rank * tensors.size() + i];
        return good;
    }

    static bool gather(Call &call, Group &group, int index, const Tensor &tensor,
                       const int64_t *rows, std::vector<uint64_t> &counts, Tensor &result) {
        std::vector<int64_t> shape = tensor.shape;
        shape[0] = sum_of_rows({rows, counts.size()}); // output() refuses -1
        if (!call.output(index, *tensor.type, shape, result)) return false;
        for (size_t rank = 0; rank < counts.size(); rank++)
            counts[rank] = static_cast<uint64_t>(rows[rank]) * tensor.row() * tensor.type->parts;
        if (result.elements == 0) return true;
        return group.post(false, [&](dtrain_op_params_t *params, dtrain_request_t **request_p) {
            return dtrain_allgatherv(group.comm(), tensor.data, result.data, counts.data(), nullptr,
                                     tensor.type->dtype, params, request_p);
        });
    }

    const Target target_;
};

} // namespace

Definition allgather() {
    return define<Allgather>("DtrainAllgather", {"tensors: T"}, {"gathered: T", "rows: int64"},
                             {"T: list({" DTRAIN_TENSORFLOW_TYPES "}) >= 1"}, unknown_shapes);
}

} // namespace dtrain::tensorflow

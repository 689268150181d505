// DtrainReduceScatter: reduces a list of tensors, of which each rank keeps some rows (slices of the
// first dimension): as many as given, or equal parts, the first ranks one more if they are not
// even.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/group.h"
#include "tensorflow/op.h"

namespace dtrain::tensorflow {

namespace {

class ReduceScatter {
  public:
    explicit ReduceScatter(Construction &construction)
        : target_(construction), op_(static_cast<uint32_t>(construction.number("op"))),
          given_(static_cast<int>(construction.number("given"))) {}

    void run(Call &call) {
        const Use use(target_.entry);
        const std::string what = std::string("reduce-scatter (") + op_name(op_) + ")";
        if (!check_kind(call, target_, use, Kind::communicator, what)) return;
        std::vector<Tensor> tensors, rows;
        if (!call.input(0, call.inputs() - given_, tensors)) return;
        if (!call.input(static_cast<int>(tensors.size()), given_, rows)) return;
        Group group(call, target_, use, what + " of " + describe(tensors));
        std::vector<std::vector<int64_t>> parts(tensors.size());
        std::string signature = what + " of " + signature_of(tensors), problem;
        for (size_t i = 0; i < tensors.size(); i++) {
            if (!reduces(*tensors[i].type, op_))
                problem = "complex numbers have a sum and an average only";
            if (problem.empty()) problem = divide(group, tensors[i], i, rows, parts[i]);
            for (const int64_t part : parts[i]) signature += " " + std::to_string(part);
        }
        if (!group.agree(signature + problem)) return;
        if (!problem.empty()) {
            group.fail(Code::invalid_argument, problem);
            return;
        }
        std::vector<std::vector<uint64_t>> counts(tensors.size());
        for (size_t i = 0; i < tensors.size(); i++)
            if (!scatter(call, group, static_cast<int>(i), tensors[i], parts[i], counts[i])) break;
        (void)group.wait();
    }

  private:
    // Fills in the rows of each rank; returns what is wrong, or an empty text.
    static std::string divide(const Group &group, const Tensor &tensor, size_t index,
                              std::span<const Tensor> rows, std::vector<int64_t> &parts) {
        const auto ranks = static_cast<size_t>(group.size());
        if (tensor.shape.empty()) return "a scalar has no rows to be scattered";
        if (rows.empty()) {
            for (int64_t rank = 0; rank < group.size(); rank++)
                parts.push_back(tensor.shape[0] / group.size() +
                                (rank < tensor.shape[0] % group.size() ? 1 : 0));
            return "";
        }
        if (rows[0].elements < (index + 1) * ranks)
            return "rows: " + rows[0].describe() + " are too few";
        const auto *const given = static_cast<const int64_t *>(rows[0].data) + index * ranks;
        parts.assign(given, given + ranks);
        int64_t sum = 0;
        for (const int64_t part : parts) {
            if (part < 0 || part > tensor.shape[0] - sum)
                return "rows: " + std::to_string(part) + " does not fit into " + tensor.describe();
            sum += part;
        }
        return sum == tensor.shape[0] ? ""
                                      : "rows: their sum is " + std::to_string(sum) +
                                            ", not that of " + tensor.describe();
    }

    bool scatter(Call &call, Group &group, int index, const Tensor &tensor,
                 std::span<const int64_t> parts, std::vector<uint64_t> &counts) const {
        for (const int64_t part : parts)
            counts.push_back(static_cast<uint64_t>(part) * tensor.row() * tensor.type->parts);
        std::vector<int64_t> shape = tensor.shape;
        shape[0] = parts[static_cast<size_t>(group.rank())];
        Tensor result;
        if (!call.output(index, *tensor.type, shape, result)) return false;
        if (tensor.elements == 0) return true;
        return group.post(false, [&](dtrain_op_params_t *params, dtrain_request_t **request_p) {
            return dtrain_reduce_scatterv(group.comm(), tensor.data, result.data, counts.data(),
                                          tensor.type->dtype, op_, params, request_p);
        });
    }

    const Target target_;
    const uint32_t op_;
    const int given_; // 0, or 1: rows are given, [tensors, ranks]
};

} // namespace

Definition reduce_scatter() {
    return define<ReduceScatter>(
        "DtrainReduceScatter", {"tensors: T", "rows: given * int64"}, {"scattered: T"},
        {"T: list({" DTRAIN_TENSORFLOW_NUMBERS "}) >= 1", "op: int", "given: int >= 0 = 0"},
        unknown_shapes);
}

} // namespace dtrain::tensorflow

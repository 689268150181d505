// DtrainAllreduce: reduces a list of tensors over the ranks of a communicator, in one op, so that
// no order in which TensorFlow runs ops can block its threads. Small tensors are packed together.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/op.h"
#include "tensorflow/packs.h"

namespace dtrain::tensorflow {

namespace {

class Allreduce {
  public:
    explicit Allreduce(Construction &construction)
        : target_(construction), op_(static_cast<uint32_t>(construction.number("op"))),
          factor_count_(static_cast<int>(construction.number("factor_count"))) {}

    void run(Call &call) {
        const Use use(target_.entry);
        const std::string what = std::string("all-reduce (") + op_name(op_) + ")";
        if (!check_kind(call, target_, use, Kind::communicator, what)) return;
        std::vector<Tensor> tensors, factors;
        if (!call.input(0, call.inputs() - factor_count_, tensors)) return;
        if (!call.input(static_cast<int>(tensors.size()), factor_count_, factors)) return;
        Group group(call, target_, use, what + " of " + describe(tensors));
        std::vector<Tensor> results(tensors.size());
        for (size_t i = 0; i < tensors.size(); i++)
            if (!call.output_like(static_cast<int>(i), static_cast<int>(i), tensors[i], results[i]))
                return;
        const std::string signature =
            what + " of " + signature_of(tensors) +
            (factors.empty() ? "" : " with factors " + signature_of(factors));
        if (group.agree(signature) && check(group, tensors, factors))
            (void)reduce(group, tensors, results, factors);
    }

  private:
    bool check(Group &group, std::span<const Tensor> tensors,
               std::span<const Tensor> factors) const {
        for (const Tensor &tensor : tensors)
            if (!reduces(*tensor.type, op_))
                return group.fail(Code::unimplemented,
                                  "complex numbers have a sum and an average only");
        for (const Tensor &factor : factors)
            if (factor.elements != 1)
                return group.fail(Code::invalid_argument,
                                  "a factor is " + factor.describe() + ", not a scalar");
        return true;
    }

    bool reduce(Group &group, std::span<const Tensor> tensors, std::span<const Tensor> results,
                std::span<const Tensor> factors) const {
        std::vector<Piece> pieces = pack(tensors, false);
        for (Piece &piece : pieces) {
            const void *send = tensors[piece.members[0]].data;
            void *recv = results[piece.members[0]].data;
            if (piece.members.size() > 1) {
                piece.block = target_.entry.take(piece.numbers * dtrain_dtype_size(piece.dtype));
                gather_piece(piece, tensors);
                send = recv = piece.block.bytes.get();
            }
            const bool posted = group.post(
                pieces.size() == 1, [&](dtrain_op_params_t *params, dtrain_request_t **request_p) {
                    set_factors(*params, factors);
                    return dtrain_allreduce(group.comm(), send, recv, piece.numbers, piece.dtype,
                                            op_, params, request_p);
                });
            if (!posted) return give_back(group, pieces, results, false);
        }
        return give_back(group, pieces, results, group.wait());
    }

    static void set_factors(dtrain_op_params_t &params, std::span<const Tensor> factors) {
        if (factors.size() < 2) return;
        params.flags |= DTRAIN_OP_FACTORS;
        params.prescale = *static_cast<const double *>(factors[0].data);
        params.postscale = *static_cast<const double *>(factors[1].data);
    }

    // Copies results out of blocks if all went well, and keeps the blocks for the next run.
    bool give_back(Group &group, std::vector<Piece> &pieces, std::span<const Tensor> results,
                   bool good) const {
        (void)group.wait(); // before its memory goes
        for (Piece &piece : pieces) {
            if (piece.block.bytes == nullptr) continue;
            if (good) scatter_piece(piece, results);
            target_.entry.give_back(std::move(piece.block));
        }
        return good;
    }

    const Target target_;
    const uint32_t op_;
    const int factor_count_; // 0, or 2: prescale and postscale
};

} // namespace

Definition allreduce() {
    return define<Allreduce>(
        "DtrainAllreduce", {"tensors: T", "factors: factor_count * double"}, {"reduced: T"},
        {"T: list({" DTRAIN_TENSORFLOW_NUMBERS "}) >= 1", "op: int", "factor_count: int >= 0 = 0"},
        same_shapes);
}

} // namespace dtrain::tensorflow

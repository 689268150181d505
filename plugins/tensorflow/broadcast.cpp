// DtrainBroadcast: copies a list of tensors from one rank to all; DtrainBarrier: waits for all
// ranks.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/op.h"
#include "tensorflow/packs.h"
#include <cstring>

namespace dtrain::tensorflow {

namespace {

class Broadcast {
  public:
    explicit Broadcast(Construction &construction)
        : target_(construction), root_(static_cast<int32_t>(construction.number("root"))) {}

    void run(Call &call) {
        const Use use(target_.entry);
        const std::string what = "broadcast from rank " + std::to_string(root_);
        if (!check_kind(call, target_, use, Kind::communicator, what)) return;
        std::vector<Tensor> tensors;
        if (!call.input(0, call.inputs(), tensors)) return;
        Group group(call, target_, use, what + " of " + describe(tensors));
        std::vector<Tensor> results(tensors.size());
        for (size_t i = 0; i < tensors.size(); i++) {
            if (!call.output_like(static_cast<int>(i), static_cast<int>(i), tensors[i], results[i]))
                return;
            if (group.rank() == root_ && results[i].data != tensors[i].data &&
                tensors[i].elements > 0)
                std::memcpy(results[i].data, tensors[i].data, tensors[i].bytes());
        }
        if (!group.agree(what + " of " + signature_of(tensors))) return;
        std::vector<Piece> pieces = pack(results, true);
        bool good = true;
        for (Piece &piece : pieces) good = good && post(group, piece, results, pieces.size() == 1);
        good = group.wait() && good;
        for (Piece &piece : pieces) {
            if (piece.block.bytes == nullptr) continue;
            if (good && group.rank() != root_) scatter_piece(piece, results);
            target_.entry.give_back(std::move(piece.block));
        }
    }

  private:
    bool post(Group &group, Piece &piece, std::span<const Tensor> results, bool only) const {
        void *buffer = results[piece.members[0]].data;
        if (piece.members.size() > 1) {
            piece.block = target_.entry.take(piece.numbers);
            buffer = piece.block.bytes.get();
            if (group.rank() == root_) gather_piece(piece, results);
        }
        return group.post(only, [&](dtrain_op_params_t *params, dtrain_request_t **request_p) {
            return dtrain_broadcast(group.comm(), buffer, piece.numbers, piece.dtype, root_, params,
                                    request_p);
        });
    }

    const Target target_;
    const int32_t root_;
};

class Barrier {
  public:
    explicit Barrier(Construction &construction) : target_(construction) {}

    void run(Call &call) {
        const Use use(target_.entry);
        if (!check_kind(call, target_, use, Kind::communicator, "barrier")) return;
        Group group(call, target_, use, "barrier");
        (void)group.agree("barrier"); // no rank returns from it before all have come
    }

  private:
    const Target target_;
};

class Rank {
  public:
    explicit Rank(Construction &construction) : target_(construction) {}

    void run(Call &call) {
        const Use use(target_.entry);
        if (!check_kind(call, target_, use, Kind::communicator, "rank")) return;
        auto *const comm = static_cast<dtrain_comm_t *>(use->handle);
        const int64_t numbers[] = {dtrain_comm_rank(comm), dtrain_comm_size(comm)};
        for (int i = 0; i < 2; i++) {
            Tensor result;
            if (!call.output(i, *find_dtype(DTRAIN_I64), {}, result)) return;
            *static_cast<int64_t *>(result.data) = numbers[i];
        }
    }

  private:
    const Target target_;
};

} // namespace

Definition broadcast() {
    return define<Broadcast>("DtrainBroadcast", {"tensors: T"}, {"copies: T"},
                             {"T: list({" DTRAIN_TENSORFLOW_TYPES "}) >= 1", "root: int = 0"},
                             same_shapes);
}

Definition barrier() { return define<Barrier>("DtrainBarrier", {}, {}, {}, unknown_shapes); }

Definition rank() {
    return define<Rank>("DtrainRank", {}, {"rank: int64", "size: int64"}, {}, unknown_shapes);
}

} // namespace dtrain::tensorflow

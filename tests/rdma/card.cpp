// Functions of libibverbs that its users find here first. What they tell the card goes on to it.
// SPDX-License-Identifier: Apache-2.0
#include "card.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <map>
#include <mutex>
#include <utility>

namespace dtrain::test {
namespace {

using PostSend = int (*)(ibv_qp *, ibv_send_wr *, ibv_send_wr **);

struct Heard {
    std::mutex mutex;
    Told told;
    std::map<ibv_context *, PostSend> posts; // the drivers' own
};
Heard &heard() {
    static Heard all;
    return all;
}

template <typename Function> Function real(const char *name) {
    static void *library = dlopen("libibverbs.so.1", RTLD_NOW);
    void *found = library ? dlsym(library, name) : nullptr;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        abort();
    }
    return reinterpret_cast<Function>(found);
}

void note_registered(const void *at, size_t len) {
    const std::lock_guard lock(heard().mutex);
    heard().told.registered.push_back({uint64_t(uintptr_t(at)), len});
}

void note(Told &told, const ibv_send_wr &request) {
    const bool read = request.opcode == IBV_WR_RDMA_READ;
    const bool write =
        request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    uint64_t remote = request.wr.rdma.remote_addr;
    for (int i = 0; i < request.num_sge; i++) {
        const Range local{request.sg_list[i].addr, request.sg_list[i].length};
        if (!read && !write)
            told.sent += local.len;
        else if (local.len > 0)
            (read ? told.read : told.written).push_back({local, {remote, local.len}});
        remote += local.len;
    }
}

int post_send(ibv_qp *qp, ibv_send_wr *requests, ibv_send_wr **bad) {
    PostSend post = nullptr;
    {
        const std::lock_guard lock(heard().mutex);
        post = heard().posts.at(qp->context);
        for (const ibv_send_wr *one = requests; one; one = one->next) note(heard().told, *one);
    }
    return post(qp, requests, bad);
}

} // namespace

Told take_told() {
    const std::lock_guard lock(heard().mutex);
    return std::exchange(heard().told, {});
}

} // namespace dtrain::test

#define EXPORTED extern "C" __attribute__((visibility("default")))
#undef ibv_reg_mr

namespace test = dtrain::test;

EXPORTED ibv_context *ibv_open_device(ibv_device *device) {
    ibv_context *context = test::real<decltype(&ibv_open_device)>("ibv_open_device")(device);
    if (!context) return nullptr;
    const std::lock_guard lock(test::heard().mutex);
    test::heard().posts[context] = std::exchange(context->ops.post_send, test::post_send);
    return context;
}

EXPORTED ibv_mr *ibv_reg_mr(ibv_pd *pd, void *at, size_t len, int access) {
    test::note_registered(at, len);
    const auto real = test::real<ibv_mr *(*)(ibv_pd *, void *, size_t, int)>("ibv_reg_mr");
    return real(pd, at, len, access);
}

EXPORTED ibv_mr *ibv_reg_mr_iova2(ibv_pd *pd, void *at, size_t len, uint64_t iova,
                                  unsigned int access) {
    test::note_registered(at, len);
    return test::real<decltype(&ibv_reg_mr_iova2)>("ibv_reg_mr_iova2")(pd, at, len, iova, access);
}

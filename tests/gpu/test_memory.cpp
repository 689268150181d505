// Memory of GPUs that the program registers or has created: what is accepted, what is refused and
// why, and how long it lives.
// SPDX-License-Identifier: Apache-2.0
#include "contract/gpu.h"
#include "contract/ranks.h"
#include "gpu/in_child.h"

namespace {

using gpu::in_child;

const ranks::Options with_gpus = {{"accelerators", "cuda"}};

void expect_text(const char *part) {
    const std::string text = ranks::last_error();
    if (text.find(part) == std::string::npos)
        std::fprintf(stderr, "\"%s\" does not tell \"%s\"\n", text.c_str(), part);
    REQUIRE(text.find(part) != std::string::npos);
}
void fail_at(const char *wish) { gpu::call_void<const char *>("fakecuda_fail", wish); }
void stall(int on) { gpu::call_void<int>("fakecuda_stall", on); }

// One rank in a process of its own, since what fails may last.
void alone(const std::function<void(dtrain_context_t *, dtrain_comm_t *)> &body) {
    in_child([&] {
        ranks::run_with_contexts(
            1, with_gpus,
            [&](int, dtrain_context_t *context, dtrain_comm_t *comm) { body(context, comm); });
    });
}

dtrain_mem_params_t params_of(void *address, uint64_t length, uint32_t type, int device = 0,
                              uint64_t flags = 0) {
    dtrain_mem_params_t params;
    DTRAIN_INIT(&params);
    params.mem_type = type;
    params.address = address;
    params.length = length;
    params.device = device;
    params.flags = flags;
    return params;
}
dtrain_mem_t *registered(dtrain_context_t *context, const dtrain_mem_params_t &params) {
    dtrain_mem_t *mem = nullptr;
    OK(dtrain_mem_register(context, &params, &mem));
    REQUIRE(dtrain_mem_address(mem) == params.address);
    return mem;
}
dtrain_mem_t *created(dtrain_context_t *context, uint64_t length, int device = 0,
                      uint64_t flags = 0) {
    const dtrain_mem_params_t params = params_of(nullptr, length, DTRAIN_MEM_CUDA, device, flags);
    dtrain_mem_t *mem = nullptr;
    OK(dtrain_mem_create(context, &params, &mem));
    REQUIRE(dtrain_mem_address(mem) != nullptr);
    return mem;
}
void refuses(dtrain_context_t *context, dtrain_status_t status, const dtrain_mem_params_t &params,
             const char *text) {
    dtrain_mem_t *mem = nullptr;
    FAILS(status, dtrain_mem_register(context, &params, &mem));
    REQUIRE(mem == nullptr);
    expect_text(text);
}
void refuses_to_create(dtrain_context_t *context, dtrain_status_t status,
                       const dtrain_mem_params_t &params, const char *text) {
    dtrain_mem_t *mem = nullptr;
    FAILS(status, dtrain_mem_create(context, &params, &mem));
    REQUIRE(mem == nullptr);
    expect_text(text);
}

dtrain_status_t sum(dtrain_comm_t *comm, void *buffer, uint64_t count,
                    const dtrain_op_params_t *params = nullptr) {
    return dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, DTRAIN_SUM, params, nullptr);
}
void write(void *to, const std::vector<float> &values) {
    const gpu::Current current(0);
    gpu::call<gpu::Address, const void *, size_t>("cuMemcpyHtoD_v2",
                                                  reinterpret_cast<gpu::Address>(to), values.data(),
                                                  values.size() * sizeof(float));
}
std::vector<float> read(const void *from, size_t count) {
    std::vector<float> values(count);
    const gpu::Current current(0);
    gpu::call<void *, gpu::Address, size_t>("cuMemcpyDtoH_v2", values.data(),
                                            reinterpret_cast<gpu::Address>(from),
                                            count * sizeof(float));
    return values;
}

// Operations on registered memory do not ask the driver whose it is; on other memory they do.
void registered_memory_is_known(void **) {
    gpu::needs_fake();
    alone([](dtrain_context_t *context, dtrain_comm_t *comm) {
        for (uint32_t type : {DTRAIN_MEM_AUTO, DTRAIN_MEM_CUDA})
            for (int device : {0, 1})
                for (uint64_t flags : {uint64_t{0}, uint64_t{DTRAIN_MEM_SHARED}}) {
                    gpu::Buffer buffer = gpu::copy_of(std::vector<float>(100, 3), device);
                    dtrain_mem_t *mem = registered(
                        context, params_of(buffer.address() + 40, 200, type,
                                           type == DTRAIN_MEM_AUTO ? 99 : device, flags));
                    fail_at("cuPointerGetAttributes:1");
                    OK(sum(comm, buffer.address() + 40, 50));
                    OK(sum(comm, buffer.address() + 200, 10));
                    // Only a part of it is registered: the driver is asked.
                    FAILS(DTRAIN_ERR_DEVICE, sum(comm, buffer.address(), 100));
                    OK(sum(comm, buffer.address(), 100));
                    OK(dtrain_mem_deregister(mem));
                    fail_at("cuPointerGetAttributes:1");
                    FAILS(DTRAIN_ERR_DEVICE, sum(comm, buffer.address() + 40, 50));
                    REQUIRE(buffer.values<float>() == std::vector<float>(100, 3));
                }
    });
}

void named_registrations(void **) {
    alone([](dtrain_context_t *context, dtrain_comm_t *comm) {
        gpu::Buffer buffer = gpu::copy_of(std::vector<float>(100, 3));
        dtrain_mem_t *mem = registered(context, params_of(buffer.address(), 400, DTRAIN_MEM_CUDA));
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.send_mem = params.recv_mem = mem;
        OK(sum(comm, buffer.address(), 100, &params));
        REQUIRE(buffer.values<float>() == std::vector<float>(100, 3));
        OK(dtrain_mem_deregister(mem));
    });
}

void wrong_memory_is_refused(void **) {
    gpu::needs_fake();
    alone([](dtrain_context_t *context, dtrain_comm_t *) {
        gpu::Buffer buffer(400);
        uint8_t *const at = buffer.address();
        std::vector<uint8_t> host(4096);
        refuses(context, DTRAIN_ERR_INVALID, params_of(at, 400, DTRAIN_MEM_HOST),
                "it lies on cuda0, and mem_type says the host; use DTRAIN_MEM_CUDA");
        refuses(context, DTRAIN_ERR_INVALID, params_of(at, 400, DTRAIN_MEM_CUDA, 1),
                "it lies on cuda0, and params.device is 1");
        refuses(context, DTRAIN_ERR_INVALID, params_of(at, 400, DTRAIN_MEM_CUDA, 7),
                "there is no device 7; this process can use cuda0, cuda1");
        refuses(context, DTRAIN_ERR_INVALID, params_of(host.data(), 400, DTRAIN_MEM_CUDA),
                "it is memory of the host, and mem_type says that of a GPU");
        for (uint32_t type : {DTRAIN_MEM_AUTO, DTRAIN_MEM_CUDA}) {
            refuses(context, DTRAIN_ERR_INVALID, params_of(at, 401, type),
                    "outside of the allocation of 400 bytes");
            refuses(context, DTRAIN_ERR_INVALID, params_of(at + 1, 400, type), "outside of");
            refuses(context, DTRAIN_ERR_INVALID, params_of(at, UINT64_MAX, type), "outside of");
            refuses(context, DTRAIN_ERR_INVALID, params_of(at, 0, type), "length 0");
            refuses(context, DTRAIN_ERR_INVALID, params_of(nullptr, 400, type), "address is NULL");
            refuses(context, DTRAIN_ERR_UNSUPPORTED, params_of(at, 400, type, 0, 6),
                    "unknown flags 0x6");
        }
        refuses(context, DTRAIN_ERR_UNSUPPORTED, params_of(at, 400, DTRAIN_MEM_DMABUF),
                "DTRAIN_MEM_DMABUF is not supported; pass the memory by its address");
        refuses(context, DTRAIN_ERR_INVALID, params_of(at, 400, 9), "unknown mem_type 9");
        dtrain_mem_t *mem = registered(context, params_of(at + 100, 100, DTRAIN_MEM_CUDA));
        for (auto [offset, bytes] : {std::pair{100, 100}, {0, 101}, {199, 1}, {0, 400}, {150, 10}})
            refuses(context, DTRAIN_ERR_INVALID,
                    params_of(at + offset, uint64_t(bytes), DTRAIN_MEM_CUDA),
                    "a part of it is registered already");
        dtrain_mem_t *before = registered(context, params_of(at, 100, DTRAIN_MEM_CUDA));
        dtrain_mem_t *behind = registered(context, params_of(at + 200, 200, DTRAIN_MEM_CUDA));
        for (dtrain_mem_t *one : {mem, behind, before}) OK(dtrain_mem_deregister(one));
        buffer.free();
        for (uint32_t type : {DTRAIN_MEM_AUTO, DTRAIN_MEM_CUDA})
            refuses(context, DTRAIN_ERR_INVALID, params_of(at, 400, type), "it has been freed");
    });
}

// Memory that only some things can be done with.
void special_memory(void **) {
    alone([](dtrain_context_t *context, dtrain_comm_t *comm) {
        gpu::Address managed = 0, pooled = 0;
        {
            const gpu::Current current(0);
            gpu::call<gpu::Address *, size_t, unsigned>("cuMemAllocManaged", &managed, 4096, 1);
            gpu::call<gpu::Address *, size_t, dtrain::cuda::Stream>("cuMemAllocAsync", &pooled,
                                                                    4096, nullptr);
        }
        auto *const of_pool = reinterpret_cast<void *>(pooled);
        for (uint32_t type : {DTRAIN_MEM_AUTO, DTRAIN_MEM_HOST, DTRAIN_MEM_CUDA})
            refuses(context, DTRAIN_ERR_UNSUPPORTED,
                    params_of(reinterpret_cast<void *>(managed), 4096, type),
                    "managed memory, which moves between the host and its devices; pass it");
        refuses(context, DTRAIN_ERR_UNSUPPORTED,
                params_of(of_pool, 4096, DTRAIN_MEM_CUDA, 0, DTRAIN_MEM_SHARED), "it is of a pool");
        expect_text("leave DTRAIN_MEM_SHARED out");
        dtrain_mem_t *mem = registered(context, params_of(of_pool, 4096, DTRAIN_MEM_CUDA));
        OK(sum(comm, of_pool, 1024));
        OK(dtrain_mem_deregister(mem));
        alignas(4096) static uint8_t page[4096];
        {
            const gpu::Current current(0);
            gpu::call<void *, size_t, unsigned>("cuMemHostRegister_v2", page, sizeof page, 1);
        }
        refuses(context, DTRAIN_ERR_UNSUPPORTED,
                params_of(page, sizeof page, DTRAIN_MEM_AUTO, 0, DTRAIN_MEM_SHARED),
                "it is pinned, and DTRAIN_MEM_SHARED would move its pages");
        refuses(context, DTRAIN_ERR_INVALID, params_of(page, sizeof page, DTRAIN_MEM_CUDA),
                "it is pinned memory of the host");
        OK(dtrain_mem_deregister(
            registered(context, params_of(page, sizeof page, DTRAIN_MEM_AUTO))));
        const gpu::Current current(0);
        gpu::call<void *>("cuMemHostUnregister", page);
        gpu::call<gpu::Address>("cuMemFree_v2", managed);
        gpu::call<gpu::Address>("cuMemFree_v2", pooled);
    });
}

void created_memory(void **) {
    gpu::needs_fake();
    alone([](dtrain_context_t *context, dtrain_comm_t *comm) {
        for (uint64_t flags : {uint64_t{0}, uint64_t{DTRAIN_MEM_SHARED}}) {
            dtrain_mem_t *mem = created(context, 400, 0, flags);
            void *const at = dtrain_mem_address(mem);
            REQUIRE(reinterpret_cast<uintptr_t>(at) % 256 == 0);
            write(at, std::vector<float>(100, 3));
            fail_at("cuPointerGetAttributes:1"); // it is known
            OK(sum(comm, at, 100));
            fail_at("");
            REQUIRE(read(at, 100) == std::vector<float>(100, 3));
            FAILS(DTRAIN_ERR_BUSY, dtrain_context_destroy(context));
            refuses(context, DTRAIN_ERR_INVALID, params_of(at, 400, DTRAIN_MEM_AUTO),
                    "registered already");
            OK(dtrain_mem_deregister(mem));
            FAILS(DTRAIN_ERR_INVALID, sum(comm, at, 100));
            expect_text("it has been freed");
        }
        dtrain_mem_t *second = created(context, 400, 1);
        OK(sum(comm, dtrain_mem_address(second), 100));
        OK(dtrain_mem_deregister(second));
        for (uint32_t type : {DTRAIN_MEM_AUTO, DTRAIN_MEM_HOST}) { // as dtrain_mem_alloc()
            const dtrain_mem_params_t params = params_of(nullptr, 400, type);
            dtrain_mem_t *host = nullptr;
            OK(dtrain_mem_create(context, &params, &host));
            REQUIRE(static_cast<uint8_t *>(dtrain_mem_address(host))[399] == 0);
            OK(dtrain_mem_deregister(host));
        }
    });
}

void what_cannot_be_created(void **) {
    gpu::needs_fake();
    alone([](dtrain_context_t *context, dtrain_comm_t *) {
        int local = 0;
        for (uint32_t type : {DTRAIN_MEM_AUTO, DTRAIN_MEM_HOST, DTRAIN_MEM_CUDA}) {
            refuses_to_create(context, DTRAIN_ERR_INVALID, params_of(&local, 400, type),
                              "the address has to be NULL");
            refuses_to_create(context, DTRAIN_ERR_INVALID, params_of(nullptr, 0, type),
                              "the length is 0");
            refuses_to_create(context, DTRAIN_ERR_UNSUPPORTED, params_of(nullptr, 1, type, 0, 8),
                              "mem_create: unknown flags 0x8");
        }
        refuses_to_create(context, DTRAIN_ERR_INVALID, params_of(nullptr, 1, 9),
                          "mem_create: unknown mem_type 9");
        refuses_to_create(context, DTRAIN_ERR_UNSUPPORTED, params_of(nullptr, 1, DTRAIN_MEM_DMABUF),
                          "DTRAIN_MEM_DMABUF is not supported");
        for (int device : {-1, 2})
            refuses_to_create(context, DTRAIN_ERR_INVALID,
                              params_of(nullptr, 1, DTRAIN_MEM_CUDA, device),
                              "this process can use cuda0, cuda1");
        refuses_to_create(context, DTRAIN_ERR_NO_MEMORY,
                          params_of(nullptr, uint64_t{1} << 50, DTRAIN_MEM_CUDA),
                          "1125899906842624 bytes on cuda0");
        expect_text("ask for less, or have some freed");
        fail_at("cuMemAlloc_v2:1:2");
        refuses_to_create(context, DTRAIN_ERR_NO_MEMORY, params_of(nullptr, 1, DTRAIN_MEM_CUDA),
                          "CUDA_ERROR_OUT_OF_MEMORY");
        fail_at("cuMemAlloc_v2:1");
        refuses_to_create(context, DTRAIN_ERR_DEVICE, params_of(nullptr, 1, DTRAIN_MEM_CUDA),
                          "accelerator cuda0: allocating memory");
        // It is freed again if it cannot be shared.
        fail_at("cuIpcGetMemHandle:1");
        refuses_to_create(context, DTRAIN_ERR_DEVICE,
                          params_of(nullptr, 1, DTRAIN_MEM_CUDA, 0, DTRAIN_MEM_SHARED),
                          "accelerator cuda0: exporting memory");
        fail_at("");
        FAILS(DTRAIN_ERR_INVALID, dtrain_mem_create(context, nullptr, nullptr));
        const dtrain_mem_params_t params = params_of(nullptr, 1, DTRAIN_MEM_CUDA);
        FAILS(DTRAIN_ERR_INVALID, dtrain_mem_create(context, &params, nullptr));
        dtrain_mem_t *mem = nullptr;
        FAILS(DTRAIN_ERR_INVALID, dtrain_mem_create(nullptr, &params, &mem));
    });
}

// The context must be allowed to use GPUs, and find some.
void no_accelerators(void **) {
    gpu::needs_fake();
    in_child([] {
        dtrain_context_t *context = ranks::make_context({{"accelerators", "none"}});
        gpu::Buffer buffer(400);
        refuses(context, DTRAIN_ERR_UNSUPPORTED, params_of(buffer.address(), 400, DTRAIN_MEM_CUDA),
                "the option accelerators is \"none\"");
        refuses_to_create(context, DTRAIN_ERR_UNSUPPORTED, params_of(nullptr, 1, DTRAIN_MEM_CUDA),
                          "the option accelerators is \"none\"");
        OK(dtrain_context_destroy(context));
    });
    in_child([] {
        setenv("FAKECUDA_DEVICES", "0", 1);
        dtrain_context_t *context = ranks::make_context({{"accelerators", "auto"}});
        refuses_to_create(context, DTRAIN_ERR_UNSUPPORTED, params_of(nullptr, 1, DTRAIN_MEM_CUDA),
                          "CUDA_ERROR_NO_DEVICE");
        OK(dtrain_context_destroy(context));
    });
}

// The program has not used the driver yet, or has begun to after the context was made.
void the_plugin_is_loaded_when_needed(void **) {
    in_child([] {
        dtrain_context_t *context = ranks::make_context({{"accelerators", "auto"}});
        dtrain_mem_t *mem = created(context, 400);
        OK(dtrain_mem_deregister(mem));
        OK(dtrain_context_destroy(context));
    });
    in_child([] {
        dtrain_context_t *context = ranks::make_context({{"accelerators", "auto"}});
        gpu::Buffer buffer(400);
        dtrain_mem_t *mem = registered(context, params_of(buffer.address(), 400, DTRAIN_MEM_AUTO));
        OK(dtrain_mem_deregister(mem));
        OK(dtrain_context_destroy(context));
    });
}

void not_while_it_is_used(void **) {
    gpu::needs_fake();
    alone([](dtrain_context_t *context, dtrain_comm_t *comm) {
        dtrain_mem_t *mem = created(context, 400);
        void *const at = dtrain_mem_address(mem);
        dtrain_request_t *request = nullptr;
        OK(sum(comm, at, 100)); // what it needs is open
        stall(1);
        OK(dtrain_allreduce(comm, at, at, 100, DTRAIN_F32, DTRAIN_SUM, nullptr, &request));
        FAILS(DTRAIN_ERR_BUSY, dtrain_mem_deregister(mem));
        expect_text("1 operations");
        stall(0);
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.flags = DTRAIN_OP_PERSISTENT;
        OK(dtrain_allreduce(comm, at, at, 100, DTRAIN_F32, DTRAIN_SUM, &params, &request));
        FAILS(DTRAIN_ERR_BUSY, dtrain_mem_deregister(mem));
        dtrain_request_free(request);
        OK(dtrain_mem_deregister(mem));
    });
}

// A call that has timed out, while the GPU is still to copy its input: the memory is freed after
// that.
void freed_after_copies_in_flight(void **) {
    gpu::needs_fake();
    alone([](dtrain_context_t *context, dtrain_comm_t *comm) {
        dtrain_mem_t *mem = created(context, 400);
        void *const at = dtrain_mem_address(mem);
        OK(sum(comm, at, 100));
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.timeout_ns = 20'000'000;
        stall(1);
        FAILS(DTRAIN_ERR_TIMEOUT, sum(comm, at, 100, &params));
        std::thread later([] {
            const timespec t = {0, 50'000'000};
            nanosleep(&t, nullptr);
            stall(0);
        });
        OK(dtrain_mem_deregister(mem));
        later.join();
        gpu::Buffer other(400); // the GPU has had no fault
        OK(sum(comm, other.address(), 100));
    });
}

// After a fault the driver refuses everything; what was made before can still be ended.
void after_a_fault(void **) {
    gpu::needs_fake();
    alone([](dtrain_context_t *context, dtrain_comm_t *) {
        gpu::Buffer buffer(400);
        dtrain_mem_t *mem = created(context, 400);
        dtrain_mem_t *own = registered(context, params_of(buffer.address(), 400, DTRAIN_MEM_CUDA));
        gpu::call_void<int>("fakecuda_fault", 700);
        refuses_to_create(context, DTRAIN_ERR_DEVICE, params_of(nullptr, 1, DTRAIN_MEM_CUDA),
                          "CUDA_ERROR_ILLEGAL_ADDRESS");
        OK(dtrain_mem_deregister(mem));
        OK(dtrain_mem_deregister(own));
    });
}

void fork_child_only_destroys(void **) {
    alone([](dtrain_context_t *context, dtrain_comm_t *comm) {
        gpu::Buffer buffer(400);
        dtrain_mem_t *mem = created(context, 400, 0, DTRAIN_MEM_SHARED);
        dtrain_mem_t *own = registered(context, params_of(buffer.address(), 400, DTRAIN_MEM_CUDA));
        in_child([&] {
            const dtrain_mem_params_t params = params_of(nullptr, 400, DTRAIN_MEM_CUDA);
            dtrain_mem_t *more = nullptr;
            FAILS(DTRAIN_ERR_STATE, dtrain_mem_create(context, &params, &more));
            FAILS(DTRAIN_ERR_STATE, dtrain_mem_register(context, &params, &more));
            OK(dtrain_mem_deregister(mem));
            OK(dtrain_mem_deregister(own));
            OK(dtrain_context_destroy(context));
        });
        OK(sum(comm, dtrain_mem_address(mem), 100));
        OK(dtrain_mem_deregister(mem));
        OK(dtrain_mem_deregister(own));
    });
}

} // namespace

int main() {
    setenv("DTRAIN_OP_TIMEOUT", "60s", 0);
    const CMUnitTest tests[] = {
        cmocka_unit_test(registered_memory_is_known),
        cmocka_unit_test(named_registrations),
        cmocka_unit_test(wrong_memory_is_refused),
        cmocka_unit_test(special_memory),
        cmocka_unit_test(created_memory),
        cmocka_unit_test(what_cannot_be_created),
        cmocka_unit_test(no_accelerators),
        cmocka_unit_test(the_plugin_is_loaded_when_needed),
        cmocka_unit_test(not_while_it_is_used),
        cmocka_unit_test(freed_after_copies_in_flight),
        cmocka_unit_test(after_a_fault),
        cmocka_unit_test(fork_child_only_destroys),
    };
    return cmocka_run_group_tests_name("memory of GPUs", tests, nullptr, nullptr);
}

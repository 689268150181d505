// Lists, describes and opens GPUs.
// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include "kernels/arguments.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>

namespace dtrain::cuda {
namespace {

constexpr uint64_t most_bytes = uint64_t{1} << 48; // more than any address space of a GPU has
constexpr uint32_t blocks_per_multiprocessor = 2048 / block_threads;
constexpr int least_compute_major = 7; // the kernels' PTX is for 7.5
// Models, for costs that nobody has measured yet: PCIe 4 with 16 lanes; a launch.
constexpr uint64_t host_bytes_per_second = 25'000'000'000, launch_ns = 5000;

// Loading them once for all spares time, and calls that wait for streams.
std::mutex modules_mutex;
void find_modules(dtrain_dv_dev &dev) {
    static std::map<int, std::weak_ptr<Modules>> all; // by ordinal
    const std::lock_guard lock(modules_mutex);
    std::weak_ptr<Modules> &known = all[dev.ordinal];
    dev.modules = known.lock();
    if (dev.modules == nullptr) known = dev.modules = std::make_shared<Modules>();
}
void leave_modules(dtrain_dv_dev &dev) {
    const std::lock_guard lock(modules_mutex);
    if (dev.here() && dev.modules.use_count() == 1) {
        const Current current(dev);
        dev.modules->unload(dev.driver);
    }
    dev.modules.reset();
}

// Finds "cuda<ordinal>".
Status find(const Host &host, const char *name, const Driver *&driver, DeviceNumber &number,
            int &ordinal) {
    if (const Status s = open_driver(host, driver); s != DTRAIN_OK) return s;
    int count = 0;
    if (const Result r = driver->device_count(&count); r != success)
        return driver->fail(host, r, "cuDeviceGetCount");
    char *end = nullptr;
    const bool named = std::strncmp(name, "cuda", 4) == 0 && name[4] >= '0' && name[4] <= '9';
    const long wanted = named ? std::strtol(name + 4, &end, 10) : -1;
    if (!named || *end != 0 || wanted >= count)
        return fail(host, DTRAIN_ERR_NOT_FOUND,
                    "cuda: there is no device \"%.32s\"; this process sees %d, from cuda0 on "
                    "(CUDA_VISIBLE_DEVICES can hide some)",
                    name, count);
    ordinal = int(wanted);
    if (const Result r = driver->device_get(&number, ordinal); r != success)
        return driver->fail(host, r, "cuDeviceGet of cuda%d", ordinal);
    return DTRAIN_OK;
}

// 0 if the driver does not know the attribute.
int attribute(const Driver &driver, DeviceNumber number, DeviceAttribute which) {
    int value = 0;
    return driver.device_attribute(&value, which, number) == success ? value : 0;
}

} // namespace

Status list(const Host *host, char *names, size_t len) {
    const Driver *driver = nullptr;
    if (const Status s = open_driver(*host, driver); s != DTRAIN_OK) return s;
    int count = 0;
    if (const Result r = driver->device_count(&count); r != success)
        return driver->fail(*host, r, "cuDeviceGetCount");
    size_t used = 0;
    names[0] = 0;
    for (int i = 0; i < count; i++) {
        const int more = snprintf(names + used, len - used, "%scuda%d", i > 0 ? "," : "", i);
        if (more < 0 || used + size_t(more) >= len)
            return fail(*host, DTRAIN_ERR_TRUNCATED, "cuda: no room for the names of %d devices",
                        count);
        used += size_t(more);
    }
    return DTRAIN_OK;
}

Status query(const Host *host, const char *name, dtrain_dv_attr_t *attr) {
    const Driver *driver = nullptr;
    DeviceNumber number = 0;
    dtrain_dv_attr_t full{};
    if (const Status s = find(*host, name, driver, number, full.ordinal); s != DTRAIN_OK) return s;
    const auto value = [&](DeviceAttribute which) { return attribute(*driver, number, which); };
    size_t bytes = 0;
    Uuid uuid{};
    Result r = driver->device_memory(&bytes, number);
    if (r == success) r = driver->device_uuid(&uuid, number);
    if (r == success) r = driver->device_name(full.name, sizeof full.name, number);
    if (r != success) return driver->fail(*host, r, "the properties of %s", name);
    full.caps = DTRAIN_DV_CAP_HOLD | DTRAIN_DV_CAP_EXPORT;
    if (value(concurrent_managed) != 0) full.caps |= DTRAIN_DV_CAP_MANAGED;
    if (value(dma_buf_supported) != 0 && driver->range_handle != nullptr)
        full.caps |= DTRAIN_DV_CAP_DMABUF;
    full.memory_bytes = bytes;
    // Twice per clock, a bus width each.
    full.memory_bps =
        uint64_t(value(memory_clock_khz)) * 1000 * 2 * uint64_t(value(memory_bus_bits)) / 8;
    full.host_bps = host_bytes_per_second;
    full.launch_ns = launch_ns;
    full.limit_bytes = most_bytes;
    full.max_operands = max_operands;
    full.handle_len = sizeof(IpcHandle);
    const bool knows_node = driver->version >= 12020;
    full.numa_node = knows_node ? value(host_numa_node) : -1;
    std::memcpy(full.uuid, uuid.bytes, sizeof full.uuid);
    snprintf(full.address, sizeof full.address, "%04x:%02x:%02x.0", unsigned(value(pci_domain)),
             unsigned(value(pci_bus)), unsigned(value(pci_device)));
    snprintf(full.driver, sizeof full.driver, "%d.%d", driver->version / 1000,
             driver->version % 1000 / 10);
    give(full, *attr);
    return DTRAIN_OK;
}

// By default cuMemcpyHtoD(), cuMemsetD8() and others like them return before the GPU's memory has
// changed, and only the default streams wait for that. Our own streams do not, so a call would take
// what was there before. From now on such functions return when the change is made; what was
// begun before is waited for once.
Status see_what_the_program_copies(dtrain_dv_dev &dev) {
    return in_context(
        dev,
        [&] {
            unsigned flags = 0;
            Result r = dev.driver.context_flags(&flags);
            if (r != success || (flags & context_sync_memops) != 0) return r;
            r = dev.driver.set_context_flags(flags | context_sync_memops);
            return r == success
                       ? dev.driver.stream_synchronize(reinterpret_cast<Stream>(stream_legacy))
                       : r;
        },
        "making copies of the program synchronous");
}

Status open(const Host *host, const char *name, dtrain_dv_dev_t **dev_p) {
    const Driver *driver = nullptr;
    DeviceNumber number = 0;
    int ordinal = 0;
    if (const Status s = find(*host, name, driver, number, ordinal); s != DTRAIN_OK) return s;
    if (const int major = attribute(*driver, number, compute_major); major < least_compute_major)
        return fail(*host, DTRAIN_ERR_UNSUPPORTED,
                    "cuda: %s has compute capability %d.x; the kernels need 7.5 or later", name,
                    major);
    std::unique_ptr<dtrain_dv_dev> fresh(new (std::nothrow)
                                             dtrain_dv_dev(*host, *driver, ordinal, number));
    if (fresh == nullptr) return fail(*host, DTRAIN_ERR_NO_MEMORY, "cuda: no memory for a device");
    if (const Result r = driver->primary_retain(&fresh->context, number); r != success)
        return driver->fail(*host, r, "the primary context of %s", name);
    find_modules(*fresh);
    fresh->most_blocks = std::max(1u, blocks_per_multiprocessor *
                                          unsigned(attribute(*driver, number, multiprocessors)));
    Status s = in_context(
        *fresh, [&] { return driver->priority_range(&fresh->ordinary, &fresh->urgent); },
        "the priorities of streams");
    if (s == DTRAIN_OK) s = see_what_the_program_copies(*fresh);
    for (const uint32_t dtype :
         {uint32_t{0}, uint32_t(DTRAIN_F32), uint32_t(DTRAIN_BF16), uint32_t(DTRAIN_F16)})
        if (s == DTRAIN_OK) s = prepare(fresh.get(), dtype);
    if (s != DTRAIN_OK) {
        close(fresh.release());
        return s;
    }
    *dev_p = fresh.release();
    return DTRAIN_OK;
}

void close(dtrain_dv_dev_t *dev) {
    if (dev->modules != nullptr) leave_modules(*dev);
    if (dev->here()) (void)dev->driver.primary_release(dev->number);
    delete dev;
}

Status prepare(dtrain_dv_dev_t *dev, uint32_t dtype) {
    if (const Status s = dev->check(); s != DTRAIN_OK) return s;
    const uint32_t module = module_of(dtype);
    if (module == module_count)
        return fail(dev->host, DTRAIN_ERR_UNSUPPORTED, "cuda: there are no kernels for the %s %u",
                    dtype < DTRAIN_DV_RULES ? "dtype" : "rules of the dtype",
                    dtype % DTRAIN_DV_RULES);
    const Current current(*dev);
    if (current.result() != success)
        return dev->driver.fail(dev->host, current.result(), "the context of cuda%d", dev->ordinal);
    return dev->modules->load(dev->driver, dev->host, module);
}

} // namespace dtrain::cuda

dtrain::cuda::Status dtrain_dv_dev::check() const {
    if (here()) return DTRAIN_OK;
    return dtrain::cuda::fail(host, DTRAIN_ERR_STATE,
                              "cuda: cuda%d was opened before fork() and belongs to the parent "
                              "process",
                              ordinal);
}

// Package testgpu has memory and streams of a GPU for tests, by the driver that the process finds.
package testgpu

// SPDX-License-Identifier: Apache-2.0

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static void *find(const char *name) {
	static void *library;
	if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW);
	void *symbol = library == NULL ? NULL : dlsym(library, name);
	if (symbol == NULL) abort();
	return symbol;
}

#define CALL(types, name, ...) do { if (((int (*) types)find(name))(__VA_ARGS__) != 0) abort(); } while (0)

static void enter(void) {
	static void *context;
	CALL((unsigned), "cuInit", 0);
	if (context == NULL) CALL((void **, int), "cuDevicePrimaryCtxRetain", &context, 0);
	CALL((void *), "cuCtxPushCurrent_v2", context);
}

static void leave(void) {
	void *context;
	CALL((void **), "cuCtxPopCurrent_v2", &context);
}

static uint64_t allocate(size_t bytes) {
	uint64_t address = 0;
	enter();
	CALL((uint64_t *, size_t), "cuMemAlloc_v2", &address, bytes);
	leave();
	return address;
}

static void release(uint64_t address) {
	enter();
	CALL((uint64_t), "cuMemFree_v2", address);
	leave();
}

static void write_to(uint64_t address, const void *from, size_t bytes) {
	enter();
	CALL((uint64_t, const void *, size_t), "cuMemcpyHtoD_v2", address, from, bytes);
	leave();
}

static void read_from(void *into, uint64_t address, size_t bytes) {
	enter();
	CALL((void *, uint64_t, size_t), "cuMemcpyDtoH_v2", into, address, bytes);
	leave();
}

static void *make_stream(void) {
	void *stream = NULL;
	enter();
	CALL((void **, unsigned, int), "cuStreamCreateWithPriority", &stream, 1, 0);
	leave();
	return stream;
}

static void nap(void *unused) {
	(void)unused;
	usleep(100 * 1000);
}

static void fill_later(uintptr_t stream, uint64_t address, unsigned char value, size_t bytes) {
	enter();
	CALL((void *, void (*)(void *), void *), "cuLaunchHostFunc", (void *)stream, nap, NULL);
	CALL((uint64_t, unsigned char, size_t, void *), "cuMemsetD8Async", address, value, bytes, (void *)stream);
	leave();
}
*/
import "C"

import (
	"runtime"
	"unsafe"
)

func inOneThread(run func()) {
	runtime.LockOSThread() // a context is current in a thread
	defer runtime.UnlockOSThread()
	run()
}

// Allocate allocates memory.
func Allocate(bytes int) (address uintptr) {
	inOneThread(func() { address = uintptr(C.allocate(C.size_t(bytes))) })
	return address
}

// Free frees it.
func Free(address uintptr) { inOneThread(func() { C.release(C.uint64_t(address)) }) }

// Write copies a slice to memory.
func Write[T any](address uintptr, from []T) {
	if len(from) > 0 {
		bytes := C.size_t(len(from)) * C.size_t(unsafe.Sizeof(from[0]))
		inOneThread(func() { C.write_to(C.uint64_t(address), unsafe.Pointer(&from[0]), bytes) })
	}
}

// Read copies memory to a new slice.
func Read[T any](address uintptr, count int) []T {
	into := make([]T, count)
	if count > 0 {
		bytes := C.size_t(count) * C.size_t(unsafe.Sizeof(into[0]))
		inOneThread(func() { C.read_from(unsafe.Pointer(&into[0]), C.uint64_t(address), bytes) })
	}
	return into
}

// Stream makes a stream.
func Stream() (handle uintptr) {
	inOneThread(func() { handle = uintptr(C.make_stream()) })
	return handle
}

// FillLater has a stream fill the memory, after a while.
func FillLater(stream, address uintptr, value byte, bytes int) {
	inOneThread(func() {
		C.fill_later(C.uintptr_t(stream), C.uint64_t(address), C.uchar(value), C.size_t(bytes))
	})
}

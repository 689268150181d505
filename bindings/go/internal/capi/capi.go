// Package capi is the C API for the package dtrain, written by SWIG (dtrain.go, dtrain_wrap.c; see
// typemaps.i), with what SWIG cannot say. Handles are numbers; a closed one must not come here.
//
// SPDX-License-Identifier: Apache-2.0
package capi

/*
#include <stdlib.h>

#include "calls.h"

static Failure *failure_at(uint64_t number) { return (Failure *)(uintptr_t)number; }
static void *memory_at(uintptr_t address) { return (void *)address; }
static void look_at(void *pointer) { (void)pointer; }
*/
import "C"

import "unsafe"

// Failure is what a call failed with.
type Failure struct {
	Status int32
	Rank   int32 // the guilty one, or -1
	Text   string
}

func failure(number uint64) *Failure {
	if number == 0 {
		return nil
	}
	made := C.failure_at(C.uint64_t(number))
	defer C.failure_free(made)
	return &Failure{int32(made.status), int32(made.rank), C.GoString(&made.text[0])}
}

var never bool
var escaped unsafe.Pointer

// address puts what p points to on the heap, where nothing moves. Who gives the address to C keeps p
// alive meanwhile. It is not given as a pointer because cgo would then check all memory around a
// slice, e.g. the struct that holds its array, for Go pointers, though C sees the slice only.
func address(p unsafe.Pointer) uintptr {
	if never {
		escaped = p
	}
	return uintptr(p)
}

// Addresses are those of memory that stays where it is; the caller keeps it alive.
func Addresses(pointers []unsafe.Pointer) []uintptr {
	addresses := make([]uintptr, len(pointers))
	for i, p := range pointers {
		addresses[i] = address(p)
	}
	return addresses
}

// MustNotBeGo panics if p points to memory of Go's (unless GODEBUG=cgocheck=0): C may not keep it.
func MustNotBeGo(p unsafe.Pointer) {
	box := &struct{ p unsafe.Pointer }{p}
	C.look_at(unsafe.Pointer(box))
}

// CString is text in C's memory, for Free.
func CString(text string) uintptr { return uintptr(unsafe.Pointer(C.CString(text))) }

// CArray is a copy of so many bytes in C's memory, for Free; 0 of nil.
func CArray(p unsafe.Pointer, bytes int) uintptr {
	if p == nil {
		return 0
	}
	array := C.malloc(C.size_t(bytes) + 1) // none of no bytes, either
	copy(unsafe.Slice((*byte)(array), bytes), unsafe.Slice((*byte)(p), bytes))
	return uintptr(array)
}

// Free frees what CString or CArray made.
func Free(memory uintptr) { C.free(C.memory_at(C.uintptr_t(memory))) }

// Text is a text of C's at this address.
func Text(address uintptr) string { return C.GoString((*C.char)(C.memory_at(C.uintptr_t(address)))) }

// Memory is the memory at this address.
func Memory(address uintptr) unsafe.Pointer { return C.memory_at(C.uintptr_t(address)) }

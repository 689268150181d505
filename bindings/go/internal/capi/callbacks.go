package capi

// SPDX-License-Identifier: Apache-2.0

/*
#include <stddef.h>
#include <stdint.h>
*/
import "C"

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"unsafe"
)

// LogSink gets a line of the log; any thread calls it.
type LogSink func(level int32, line string)

// AllGather fills recv with the ranks' bytes, as many of each as send has, and tells whether it could. It
// does not panic.
type AllGather func(send []byte, recv unsafe.Pointer) bool

// Place says which server holds a range. It does not panic.
type Place func(first, count uint64, servers uint32) uint32

var callbacks = struct {
	sync.RWMutex
	functions map[uint64]any
	last      uint64
}{functions: map[uint64]any{}}

// NewCallback keeps a function, until DropCallback, and returns its number, by which C calls it.
func NewCallback(function any) uint64 {
	callbacks.Lock()
	defer callbacks.Unlock()
	callbacks.last++
	callbacks.functions[callbacks.last] = function
	return callbacks.last
}

// DropCallback forgets a function: calls from now on do nothing.
func DropCallback(number uint64) {
	callbacks.Lock()
	defer callbacks.Unlock()
	delete(callbacks.functions, number)
}

func callback(number C.uintptr_t) any {
	callbacks.RLock()
	defer callbacks.RUnlock()
	return callbacks.functions[uint64(number)]
}

// report keeps a panic from C's frames, which it cannot unwind.
func report(what string) {
	if reason := recover(); reason != nil {
		fmt.Fprintf(os.Stderr, "dtrain: panic in %s: %v\n%s", what, reason, debug.Stack())
	}
}

//export goLog
func goLog(number C.uintptr_t, level C.int32_t, line *C.char) {
	defer report("the log's sink")
	if sink, ok := callback(number).(LogSink); ok {
		sink(int32(level), C.GoString(line))
	}
}

//export goAllGather
func goAllGather(number C.uintptr_t, send, recv unsafe.Pointer, length C.size_t) (failed C.int32_t) {
	gather, ok := callback(number).(AllGather)
	if ok && gather(unsafe.Slice((*byte)(send), int(length)), recv) {
		return 0
	}
	return 1
}

//export goPlace
func goPlace(number C.uintptr_t, first, count C.uint64_t, servers C.uint32_t) (server C.uint32_t) {
	if place, ok := callback(number).(Place); ok {
		return C.uint32_t(place(uint64(first), uint64(count), uint32(servers)))
	}
	return ^C.uint32_t(0) // no server: refused
}

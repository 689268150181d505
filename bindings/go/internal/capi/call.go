package capi

// SPDX-License-Identifier: Apache-2.0

/*
#include <stdlib.h>

#include "calls.h"
*/
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Call is how an operation is run, and its outcome.
type Call struct{ c C.Call }

// Params are the numbers of dtrain_op_params_t.
type Params struct {
	TimeoutNs           int64
	Priority            int32
	Prescale, Postscale float64
	Factors             bool
	Weight              float64
	MinVersion          uint64
	Stream              uintptr // 0: none
}

// Event is the outcome of an operation.
type Event struct {
	Tag     uint64
	Request uintptr
	Bytes   uint64
	Status  int32
	Peer    int32
	Version uint64
}

// Set makes it a new blocking call.
func (call *Call) Set(p *Params) {
	call.c = C.Call{}
	call.c.params.timeout_ns = C.int64_t(p.TimeoutNs)
	call.c.params.priority = C.int32_t(p.Priority)
	call.c.params.prescale = C.double(p.Prescale)
	call.c.params.postscale = C.double(p.Postscale)
	if p.Factors {
		call.c.params.flags = C.DTRAIN_OP_FACTORS
	}
	call.c.params.weight = C.double(p.Weight)
	call.c.params.min_version = C.uint64_t(p.MinVersion)
	if p.Stream != 0 {
		call.c.params.stream_type = C.DTRAIN_STREAM_CUDA
		// No pointer for Go, which refuses 1 and 2, the default streams, as one.
		*(*uintptr)(unsafe.Pointer(&call.c.params.stream)) = p.Stream
	}
}

// Watch ends the call when the word is raised, if need be by aborting comm (or 0).
func (call *Call) Watch(word *Word, comm uintptr) {
	if word != nil {
		call.c.cancel = word.c
	}
	call.c.comm = (*C.dtrain_comm_t)(Memory(comm))
}

// Start makes it return at once; the queue tells the end of the request.
func (call *Call) Start(queue uintptr, tag uint64, persistent bool) {
	call.c.mode = C.CALL_START
	call.c.params.cq = (*C.dtrain_cq_t)(Memory(queue))
	call.c.params.user_tag = C.uint64_t(tag)
	if persistent {
		call.c.params.flags |= C.DTRAIN_OP_PERSISTENT
	}
}

// Canceled tells whether a raised word ended it.
func (call *Call) Canceled() bool { return call.c.canceled != 0 }

// Aborted tells whether this took the communicator with it.
func (call *Call) Aborted() bool { return call.c.aborted != 0 }

// Request is that of a started call.
func (call *Call) Request() uintptr { return uintptr(unsafe.Pointer(call.c.request)) }

// Event is that of a blocking call.
func (call *Call) Event() Event { return event(&call.c.event) }

func event(e *C.dtrain_event_t) Event {
	return Event{uint64(e.user_tag), uintptr(unsafe.Pointer(e.request)), uint64(e.bytes),
		int32(e.status), int32(e.peer), uint64(e.version)}
}

// Events takes up to 64 events that wait in a queue, or fewer; its error is a negative status.
func Events(queue uintptr, take func(Event)) int32 {
	var events [64]C.dtrain_event_t
	count := Cq_poll(queue, unsafe.Pointer(&events[0]), uint32(len(events)), 0)
	for i := int32(0); i < count; i++ {
		take(event(&events[i]))
	}
	return count
}

// RequestError is the text of a request that failed.
func RequestError(request uintptr) string {
	var text [2048]byte
	n := Request_error(request, unsafe.Pointer(&text[0]), int64(len(text)))
	if n >= int64(len(text)) {
		n = int64(len(text)) - 1
	}
	return string(text[:n])
}

// Word is a flag for calls in C's memory.
type Word struct{ c *C.uint32_t }

// NewWord makes one that is not raised.
func NewWord() *Word {
	word := &Word{(*C.uint32_t)(C.calloc(1, 4))}
	runtime.SetFinalizer(word, func(word *Word) { C.free(unsafe.Pointer(word.c)) })
	return word
}

// Raise ends the calls that watch it.
func (word *Word) Raise() {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(word.c)), 1)
	runtime.KeepAlive(word)
}

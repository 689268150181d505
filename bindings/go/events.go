package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"os"
	"sync"
	"syscall"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// events is the completion queue of a context's started operations, made with the first of them. A
// goroutine waits for its descriptor without a thread.
type events struct {
	sync.Mutex
	queue    uintptr
	file     *os.File // a duplicate of the descriptor
	stopped  chan struct{}
	requests map[uint64]*Request
	last     uint64
	draining sync.Mutex // held while events are taken and passed to their requests
}

const queueDepth = 1 << 14

// open makes the queue unless there is one.
func (e *events) open(context uintptr) (uintptr, error) {
	e.Lock()
	defer e.Unlock()
	if e.queue != 0 {
		return e.queue, nil
	}
	var queue uintptr
	if failure := capi.Cq_create(context, queueDepth, unsafe.Pointer(&queue)); failure != nil {
		return 0, makeError(failure)
	}
	descriptor, err := syscall.Dup(int(capi.Cq_fd(queue)))
	if err != nil {
		capi.Cq_destroy(queue)
		return 0, errorf(ErrIO, "cannot duplicate the descriptor of a completion queue: %v", err)
	}
	syscall.CloseOnExec(descriptor)
	e.file = os.NewFile(uintptr(descriptor), "completion queue")
	e.requests = map[uint64]*Request{}
	e.draining.Lock()
	e.queue = queue
	e.draining.Unlock()
	e.stopped = make(chan struct{})
	go e.pump()
	return queue, nil
}

// pump passes events to their requests, until the file is closed.
func (e *events) pump() {
	defer close(e.stopped)
	connection, err := e.file.SyscallConn()
	if err != nil {
		return
	}
	// The function returns false (not done), so it is called again when there are events.
	_ = connection.Read(func(uintptr) bool { e.drain(); return false })
}

// drain takes all waiting events from the queue.
func (e *events) drain() {
	e.draining.Lock()
	defer e.draining.Unlock()
	for e.queue != 0 && capi.Events(e.queue, func(event capi.Event) {
		if r := e.request(event.Tag); r != nil {
			r.finish(event)
		}
	}) > 0 {
	}
}

func (e *events) request(tag uint64) *Request {
	e.Lock()
	defer e.Unlock()
	return e.requests[tag]
}

func (e *events) add(r *Request) {
	e.Lock()
	defer e.Unlock()
	e.last++
	r.tag = e.last
	e.requests[r.tag] = r
}

func (e *events) drop(r *Request) {
	e.Lock()
	defer e.Unlock()
	delete(e.requests, r.tag)
}

// close must be called when no operation is in flight.
func (e *events) close() *capi.Failure {
	if e.file == nil {
		return nil
	}
	e.drain()
	e.draining.Lock()
	failure := capi.Cq_destroy(e.queue)
	if failure == nil {
		e.queue = 0
	}
	e.draining.Unlock()
	if failure == nil {
		e.file.Close()
		<-e.stopped
		e.file = nil
	}
	return failure
}

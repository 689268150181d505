package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"sync"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Request is an operation in flight, or a prepared one.
type Request struct {
	identity
	events *events
	tag    uint64
	held   []*region
	object *object // for a prepared operation

	mutex      sync.Mutex
	handle     uintptr // 0: freed
	persistent bool
	running    bool
	done       chan struct{} // closed when it has finished
	result     Result
	err        error
}

// begin starts an operation that outlasts the call.
func (o *operator) begin(post operation, memory ...view) (*Request, error) {
	handle, err := o.enter()
	if err != nil {
		return nil, err
	}
	defer o.object.leave()
	r := &Request{events: &o.context.events, running: true, done: make(chan struct{})}
	r.born()
	if err := r.post(o, handle, post, memory); err != nil {
		return nil, err
	}
	return r, nil
}

// prepare prepares an operation, which Request.Start starts.
func (o *operator) prepare(post operation, memory ...view) (*Request, error) {
	r := &Request{events: &o.context.events, persistent: true, done: make(chan struct{}),
		err: errorf(ErrState, "this operation was not started")}
	close(r.done)
	r.born()
	if err := o.check(); err != nil {
		return nil, err
	}
	made, err := o.object.make("prepared operation", func(uintptr) *capi.Failure { return r.end() },
		func(handle uintptr, made *uintptr) error {
			err := r.post(o, handle, post, memory)
			*made = r.handle
			return err
		})
	if err != nil {
		return nil, err
	}
	r.object = made
	return r, nil
}

func (r *Request) post(o *operator, handle uintptr, post operation, memory []view) error {
	queue, err := o.context.events.open(o.context.object.handle)
	if err == nil {
		r.held, err = o.context.memories.hold(memory...)
	}
	if err != nil {
		return err
	}
	r.events.add(r)
	call := calls.Get().(*capi.Call)
	defer calls.Put(call)
	params := o.numbers()
	call.Set(&params)
	call.Start(queue, r.tag, r.persistent)
	r.mutex.Lock() // the event may come before the call returns
	defer r.mutex.Unlock()
	if failure := post(handle, call); failure != nil {
		r.events.drop(r)
		release(r.held)
		return makeError(failure)
	}
	r.handle = call.Request()
	return nil
}

// finish processes the event of the operation's end.
func (r *Request) finish(event capi.Event) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.running = false
	r.result, r.err = resultOf(event), nil
	if event.Status != 0 {
		r.err = &Error{Status: Status(event.Status), Rank: int(event.Peer),
			Text: capi.RequestError(r.handle)}
	}
	if !r.persistent {
		r.free()
	}
	close(r.done)
}

func (r *Request) free() {
	r.events.drop(r)
	capi.Request_free(r.handle)
	r.handle = 0
	release(r.held)
	r.held = nil
}

// Done returns a channel that is closed when the operation has finished; for a prepared one, its
// last start.
func (r *Request) Done() <-chan struct{} {
	if r.check("request") != nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.done
}

// Wait waits for the operation's end. When ctx ends first, Wait returns its error, and the
// operation continues; Cancel asks it to end.
func (r *Request) Wait(ctx context.Context) (Result, error) {
	select {
	case <-r.Done():
		return r.Result()
	default:
	}
	select {
	case <-r.Done():
		return r.Result()
	case <-ctx.Done():
		return Result{}, waitEnded(ctx.Err())
	}
}

func waitEnded(reason error) error {
	status := ErrCanceled
	if reason == context.DeadlineExceeded {
		status = ErrTimeout
	}
	return &Error{status, -1, "the wait ended, the operation continues: " + reason.Error(), reason}
}

// Result returns the outcome, or an error; ErrState while the operation runs.
func (r *Request) Result() (Result, error) {
	if err := r.check("request"); err != nil {
		return Result{}, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.running {
		return Result{}, errorf(ErrState, "this operation has not finished")
	}
	return r.result, r.err
}

// Err returns the operation's error, or nil; ErrState while it runs.
func (r *Request) Err() error {
	_, err := r.Result()
	return err
}

// Cancel asks the operation to end early: it still finishes, with ErrCanceled if nothing was done.
// ErrState: it is a collective that other ranks may have begun.
func (r *Request) Cancel() error {
	if err := r.check("request"); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.running {
		return nil
	}
	return errorOf(capi.Request_cancel(r.handle))
}

// Start starts a prepared operation again. ErrBusy while it runs.
func (r *Request) Start() error {
	if err := r.check("request"); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch {
	case !r.persistent || r.handle == 0:
		return errorf(ErrState, "this operation was not prepared, or is closed")
	case r.running:
		return errorf(ErrBusy, "this operation has not finished")
	}
	r.running, r.done = true, make(chan struct{})
	if failure := capi.Request_start(unsafe.Pointer(&r.handle), 1); failure != nil {
		r.running = false
		r.err = makeError(failure)
		close(r.done)
		return r.err
	}
	return nil
}

// Close frees a prepared operation, as closing its communicator does. ErrBusy while it runs. Other
// requests need no Close.
func (r *Request) Close() error {
	if err := r.check("request"); err != nil {
		return err
	}
	if r.object == nil {
		return nil
	}
	return r.object.close()
}

func (r *Request) end() *capi.Failure {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.running {
		return &capi.Failure{Status: int32(ErrBusy), Rank: -1, Text: "this operation has not finished"}
	}
	r.free()
	return nil
}

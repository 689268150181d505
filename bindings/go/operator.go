package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"math"
	"sync"
	"time"

	"dtrain.org/dtrain/internal/capi"
)

// Params says how an operation runs; zero fields mean the defaults.
type Params struct {
	// Timeout ends the operation with ErrTimeout: 0 is option op.timeout, less than 0 no timeout. The
	// deadline of a blocking call's context.Context does the same.
	Timeout  time.Duration
	Priority int // higher goes first
	// Factors for each rank's input and for the result, in reductions of floating types. 0 means 1,
	// unless Factors is set, which takes both as they are.
	Prescale, Postscale float64
	Factors             bool
	Weight              float64 // weight of a push in an average
	MinVersion          uint64  // a pull waits until this many updates have been applied
	// A CUstream or cudaStream_t, in whose order collectives and messages on its GPU (DeviceMemory)
	// are: only blocking calls wait for it. 0 is no stream, 1 the default stream.
	Stream uintptr
}

// Result is the outcome of a finished operation.
type Result struct {
	Bytes   int    // moved into the program's memory (receive, pull)
	Peer    int    // the sender of what was received; else -1
	Version uint64 // of tables: the version that was read or made
}

// operation posts an operation on a handle.
type operation = func(handle uintptr, call *capi.Call) *capi.Failure

// operator runs operations on an object.
type operator struct {
	handle
	context *Context
	comm    *object // aborted if a blocking operation must end and cannot be canceled; or nil
	params  Params
}

// as makes o run operations as other does, with parameters. If other is a copy, o counts as one,
// too.
func (o *operator) as(other *operator, params Params) {
	o.object = other.object
	o.context, o.comm, o.params = other.context, other.comm, params
	if o.self = other.self; other.self == &other.identity {
		o.born()
	}
}

var calls = sync.Pool{New: func() any { return new(capi.Call) }}

// run runs a blocking operation.
func (o *operator) run(ctx context.Context, post operation) error {
	if ctx.Done() != nil || o.params != (Params{}) {
		_, err := o.find(ctx, post)
		return err
	}
	handle, err := o.enter()
	if err != nil {
		return err
	}
	failure := post(handle, nil)
	o.object.leave()
	return errorOf(failure)
}

// find runs a blocking operation with a result.
func (o *operator) find(ctx context.Context, post operation) (Result, error) {
	handle, err := o.enter()
	if err != nil {
		return Result{}, err
	}
	defer o.object.leave()
	params := o.numbers()
	deadline, limited := ctx.Deadline()
	if limited {
		left := int64(time.Until(deadline))
		limited = params.TimeoutNs <= 0 || left < params.TimeoutNs
		if limited {
			params.TimeoutNs = left
		}
	}
	if reason := ctx.Err(); reason != nil || limited && params.TimeoutNs <= 0 {
		return Result{}, unbegun(reason)
	}
	call := calls.Get().(*capi.Call)
	defer calls.Put(call)
	call.Set(&params)
	comm := uintptr(0)
	if o.comm != nil {
		comm = o.comm.handle // open as long as the objects that were made from it are in use
	}
	word := o.context.watches.of(ctx)
	call.Watch(word, comm)
	failure := post(handle, call)
	if failure == nil {
		return resultOf(call.Event()), nil
	}
	return Result{}, ended(ctx, failure, call, limited)
}

func (o *operator) numbers() capi.Params {
	p := &o.params
	return capi.Params{TimeoutNs: int64(p.Timeout), Priority: int32(clamp(p.Priority)),
		Prescale: p.Prescale, Postscale: p.Postscale, Factors: p.Factors, Weight: p.Weight,
		MinVersion: p.MinVersion, Stream: p.Stream}
}

func resultOf(event capi.Event) Result {
	return Result{int(event.Bytes), int(event.Peer), event.Version}
}

// unbegun is the error of an operation that was not started, as its ctx had ended before.
func unbegun(reason error) error {
	if reason != nil && reason != context.DeadlineExceeded {
		return &Error{ErrCanceled, -1, "the context.Context was canceled; the operation was not started", reason}
	}
	return &Error{ErrTimeout, -1, "the deadline of the context.Context has passed; the operation was not started",
		context.DeadlineExceeded}
}

// ended is the error of an operation that its ctx may have ended.
func ended(ctx context.Context, failure *capi.Failure, call *capi.Call, limited bool) error {
	err := makeError(failure)
	switch {
	case call.Aborted():
		err.cause = ctx.Err()
		err.Text = "the context.Context was canceled; other ranks may have begun this operation: " +
			"the communicator was aborted, on all ranks: " + err.Text
	case call.Canceled():
		err.cause = ctx.Err()
		err.Text = "the context.Context was canceled: " + err.Text
	case limited && err.Status == ErrTimeout:
		err.cause = context.DeadlineExceeded
	}
	return err
}

// clamp limits a number to 32 bits; the library refuses the limits as it would the number.
func clamp(number int) int {
	if number > math.MaxInt32 {
		return math.MaxInt32
	}
	if number < math.MinInt32 {
		return math.MinInt32
	}
	return number
}

// watches has a word for each context.Context of an operation, and raises it when the context is
// canceled.
type watches struct {
	sync.Mutex
	words map[<-chan struct{}]*capi.Word
	ended chan struct{}
}

// of returns the word of ctx, the same in each call; nil if ctx cannot be canceled.
func (w *watches) of(ctx context.Context) *capi.Word {
	done := ctx.Done()
	if done == nil {
		return nil
	}
	w.Lock()
	defer w.Unlock()
	word := w.words[done]
	if word == nil {
		word = capi.NewWord()
		w.words[done] = word
		go w.wait(ctx, word)
	}
	return word
}

func (w *watches) wait(ctx context.Context, word *capi.Word) {
	select {
	case <-ctx.Done():
		if ctx.Err() != context.DeadlineExceeded { // operations have the deadline as their timeout
			word.Raise()
		}
	case <-w.ended:
	}
	w.Lock()
	defer w.Unlock()
	delete(w.words, ctx.Done())
}

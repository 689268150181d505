package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"time"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Gradients is a queue of named tensors that ranks submit in any order. Tensors are packed together
// and reduced once every rank has submitted them (docs/GRADIENTS.md).
type Gradients struct{ operator }

// GradientsParams has the fields of dtrain_gradients_params_t; zero means the default.
type GradientsParams struct {
	BucketBytes                 uint64
	Cycle, StallWarn, StallFail time.Duration
}

// NewGradients makes a queue. Collective.
func NewGradients(comm *Comm, params GradientsParams) (*Gradients, error) {
	p := capi.NewGradients_params()
	defer capi.DeleteGradients_params(p)
	p.SetBucket_bytes(params.BucketBytes)
	p.SetCycle_ns(int64(params.Cycle))
	p.SetStall_warn_ns(int64(params.StallWarn))
	p.SetStall_fail_ns(int64(params.StallFail))
	made, err := comm.made("gradient queue", capi.Gradients_destroy,
		func(handle uintptr, made *uintptr) error {
			return errorOf(capi.Gradients_create(handle, p.Swigcptr(), unsafe.Pointer(made)))
		})
	if err != nil {
		return nil, err
	}
	g := new(Gradients)
	g.of(made)
	g.context = comm.context
	return g, nil
}

// Close ends the queue on all ranks.
func (g *Gradients) Close() error { return g.close() }

// With returns the same queue with parameters for its operations.
func (g *Gradients) With(params Params) *Gradients {
	other := new(Gradients)
	other.as(&g.operator, params)
	return other
}

func submit[T Element](name string, send, recv []T, op Op) request {
	if len(send) != len(recv) {
		return request{err: errorf(ErrInvalid, "send has %d elements and recv %d", len(send), len(recv))}
	}
	if err := whole("the name", name); err != nil {
		return request{err: err}
	}
	from, to := viewOf(send), viewOf(recv)
	return request{post: func(queue uintptr, call *capi.Call) *capi.Failure {
		return capi.Gradients_submit(queue, name, from.pointer, to.pointer, uint64(from.count),
			uint32(from.dtype), uint32(op), call)
	}, memory: []view{from, to}}
}

// Submit makes recv the mean, or another op, of all ranks' send of this name; in place if they are
// the same. Other ranks may have begun it, so its timeout or the deadline of ctx ends it, but not
// cancellation.
func Submit[T Element](ctx context.Context, queue *Gradients, name string, send, recv []T, op Op) error {
	return done(queue.block(ctx, submit(name, send, recv, op)))
}

// StartSubmit starts a Submit, so that the program can compute meanwhile. Slices must be memory of
// Alloc or Register.
func StartSubmit[T Element](queue *Gradients, name string, send, recv []T, op Op) (*Request, error) {
	return queue.launch(submit(name, send, recv, op))
}

// JoinGradients is for a rank without more data: it contributes zeros until all ranks have joined.
// Returns the rank that joined last.
func JoinGradients(ctx context.Context, queue *Gradients) (last int, err error) {
	result, err := queue.find(ctx, capi.Gradients_join)
	return result.Peer, err
}

// StartJoinGradients starts a JoinGradients; the result's Peer is the rank that joined last.
func StartJoinGradients(queue *Gradients) (*Request, error) { return queue.begin(capi.Gradients_join) }

// GradientsStats has counts of this rank since the queue was made.
type GradientsStats struct {
	Cycles, Exchanges, Tensors, Buckets, FusedTensors, FusedBytes, Stalls uint64
}

// Stats returns the counts.
func (g *Gradients) Stats() (GradientsStats, error) {
	s := capi.NewGradients_counters()
	defer capi.DeleteGradients_counters(s)
	err := g.call(func(handle uintptr) *capi.Failure {
		return capi.Gradients_stats(handle, s.Swigcptr())
	})
	return GradientsStats{s.GetCycles(), s.GetExchanges(), s.GetTensors(), s.GetBuckets(),
		s.GetFused_tensors(), s.GetFused_bytes(), s.GetStalls()}, err
}

package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Table is a named array on the servers, or on the workers of a job without servers: dense, or rows
// by 64-bit keys. Operations on ranges take the index of the first element and as many elements as
// the slice has.
type Table[T Element] struct {
	operator
	comm *Comm
	dim  int
}

// NewTable makes a table of a job. Collective over comm, the job's own communicator: all ranks pass
// the same name and parameters.
func NewTable[T Element](comm *Comm, name string, params TableParams) (*Table[T], error) {
	if err := first(comm.check(), whole("the name", name), whole("the function", params.Function)); err != nil {
		return nil, err
	}
	p := capi.NewTable_params()
	defer capi.DeleteTable_params(p)
	place := params.fill(p, TypeOf[T]())
	defer place.drop()
	made, err := comm.made("table", capi.Table_destroy, func(handle uintptr, made *uintptr) error {
		return place.explain(capi.Table_create(handle, name, p.Swigcptr(), unsafe.Pointer(made)))
	})
	if err != nil {
		return nil, err
	}
	t := &Table[T]{comm: comm, dim: int(params.Dim)}
	t.of(made)
	t.context = comm.context
	return t, nil
}

// Close frees the table; the servers drop it when the last worker has closed it.
func (t *Table[T]) Close() error { return t.close() }

// With returns the same table with parameters for its operations.
func (t *Table[T]) With(params Params) *Table[T] {
	other := &Table[T]{comm: t.comm, dim: t.dim}
	other.as(&t.operator, params)
	return other
}

// request is an operation on a table and the memory that it uses.
type request struct {
	post   operation
	memory []view
	err    error
}

func (o *operator) block(ctx context.Context, r request) (Result, error) {
	if r.err != nil {
		return Result{}, r.err
	}
	return o.find(ctx, r.post)
}

func (o *operator) launch(r request) (*Request, error) {
	if r.err != nil {
		return nil, r.err
	}
	return o.begin(r.post, r.memory...)
}

func (o *operator) prepared(r request) (*Request, error) {
	if r.err != nil {
		return nil, r.err
	}
	return o.prepare(r.post, r.memory...)
}

func done(_ Result, err error) error { return err }

type rangeCall = func(table uintptr, first, count uint64, values unsafe.Pointer,
	call *capi.Call) *capi.Failure

// span is an operation on a range.
func span[T Element](function rangeCall, first int, values []T) request {
	if first < 0 {
		return request{err: errorf(ErrInvalid, "the first element of a range cannot be %d", first)}
	}
	v := viewOf(values)
	return request{post: func(table uintptr, call *capi.Call) *capi.Failure {
		return function(table, uint64(first), uint64(v.count), v.pointer, call)
	}, memory: []view{v}}
}

type rowsCall = func(table uintptr, keys unsafe.Pointer, count uint64, values unsafe.Pointer,
	call *capi.Call) *capi.Failure

// rows is an operation on rows of `width` elements.
func rows[T Element](function rowsCall, keys []uint64, values []T, width int) request {
	k, v := viewOf(keys), viewOf(values)
	if v.count != k.count*width {
		return request{err: errorf(ErrInvalid, "%d keys, with rows of %d elements, do not match %d values", k.count,
			width, v.count)}
	}
	return request{post: func(table uintptr, call *capi.Call) *capi.Failure {
		return function(table, k.pointer, uint64(k.count), v.pointer, call)
	}, memory: []view{k, v}}
}

func (t *Table[T]) pushPull(first int, push, pull []T) request {
	if len(push) != len(pull) {
		return request{err: errorf(ErrInvalid, "there are %d values to push but %d to pull", len(push), len(pull))}
	}
	to := viewOf(pull)
	r := span(func(table uintptr, first, count uint64, from unsafe.Pointer, call *capi.Call) *capi.Failure {
		return capi.Table_push_pull(table, first, count, from, to.pointer, call)
	}, first, push)
	r.memory = append(r.memory, to)
	return r
}

func (t *Table[T]) pushPullRows(keys []uint64, push, pull []T) request {
	if len(push) != len(pull) {
		return request{err: errorf(ErrInvalid, "there are %d values to push but %d to pull", len(push), len(pull))}
	}
	to := viewOf(pull)
	r := rows(func(table uintptr, keys unsafe.Pointer, count uint64, from unsafe.Pointer,
		call *capi.Call) *capi.Failure {
		return capi.Table_push_pull_rows(table, keys, count, from, to.pointer, call)
	}, keys, push, t.dim)
	r.memory = append(r.memory, to)
	return r
}

func (t *Table[T]) eraseRows(keys []uint64) request {
	return rows(func(table uintptr, keys unsafe.Pointer, count uint64, _ unsafe.Pointer,
		call *capi.Call) *capi.Failure {
		return capi.Table_erase_rows(table, keys, count, call)
	}, keys, []T(nil), 0)
}

// Push passes values to the table's rule. The result has the version.
func (t *Table[T]) Push(ctx context.Context, first int, values []T) (Result, error) {
	return t.block(ctx, span(capi.Table_push, first, values))
}

// Pull reads values.
func (t *Table[T]) Pull(ctx context.Context, first int, values []T) (Result, error) {
	return t.block(ctx, span(capi.Table_pull, first, values))
}

// PushPull pushes and pulls in one round trip; push and pull may be the same. Under BSP it also
// ends the worker's clock.
func (t *Table[T]) PushPull(ctx context.Context, first int, push, pull []T) (Result, error) {
	return t.block(ctx, t.pushPull(first, push, pull))
}

// Set overwrites values, whatever the rule and the clock.
func (t *Table[T]) Set(ctx context.Context, first int, values []T) error {
	return done(t.block(ctx, span(capi.Table_set, first, values)))
}

// PushRows passes rows to the table's rule, and creates missing rows.
func (t *Table[T]) PushRows(ctx context.Context, keys []uint64, values []T) (Result, error) {
	return t.block(ctx, rows(capi.Table_push_rows, keys, values, t.dim))
}

// PullRows reads rows; a key without a row has its initial values.
func (t *Table[T]) PullRows(ctx context.Context, keys []uint64, values []T) (Result, error) {
	return t.block(ctx, rows(capi.Table_pull_rows, keys, values, t.dim))
}

// PushPullRows pushes and pulls rows in one round trip.
func (t *Table[T]) PushPullRows(ctx context.Context, keys []uint64, push, pull []T) (Result, error) {
	return t.block(ctx, t.pushPullRows(keys, push, pull))
}

// SetRows overwrites rows, whatever the rule and the clock.
func (t *Table[T]) SetRows(ctx context.Context, keys []uint64, values []T) error {
	return done(t.block(ctx, rows(capi.Table_set_rows, keys, values, t.dim)))
}

// EraseRows drops rows and their state.
func (t *Table[T]) EraseRows(ctx context.Context, keys []uint64) error {
	return done(t.block(ctx, t.eraseRows(keys)))
}

// CountRows returns the number of rows on all servers.
func (t *Table[T]) CountRows(ctx context.Context) (uint64, error) {
	var count uint64
	_, err := t.find(ctx, func(table uintptr, call *capi.Call) *capi.Failure {
		return capi.Table_count_rows(table, unsafe.Pointer(&count), call)
	})
	return count, err
}

// Clock ends this worker's clock; its pushes so far belong to that clock.
func (t *Table[T]) Clock(ctx context.Context) error { return done(t.find(ctx, capi.Table_clock)) }

// SetRate replaces the learning rate.
func (t *Table[T]) SetRate(ctx context.Context, rate float64) error {
	return t.run(ctx, func(table uintptr, call *capi.Call) *capi.Failure {
		return capi.Table_set_rate(table, rate, call)
	})
}

// SetUpdates says how often the table was updated before: the next update is number count + 1.
func (t *Table[T]) SetUpdates(ctx context.Context, count uint64) error {
	return t.run(ctx, func(table uintptr, call *capi.Call) *capi.Failure {
		return capi.Table_set_updates(table, count, call)
	})
}

// SetReady declares the table initialized; usually one worker does.
func (t *Table[T]) SetReady(ctx context.Context) error { return t.run(ctx, capi.Table_set_ready) }

// WaitReady waits until a worker has called SetReady.
func (t *Table[T]) WaitReady(ctx context.Context) error { return t.run(ctx, capi.Table_wait_ready) }

// SetConsistency changes Consistency, Staleness, Quorum and Reproducible; other parameters are not
// read. Collective. Only the option op.timeout limits it.
func (t *Table[T]) SetConsistency(params TableParams) error {
	p := capi.NewTable_params()
	defer capi.DeleteTable_params(p)
	params.mode(p)
	if err := t.check(); err != nil {
		return err
	}
	comm, err := t.comm.enter()
	if err != nil {
		return err
	}
	defer t.comm.object.leave()
	return t.call(func(table uintptr) *capi.Failure {
		return capi.Table_set_consistency(comm, table, p.Swigcptr(), 0)
	})
}

package dtrain

// SPDX-License-Identifier: Apache-2.0

import "dtrain.org/dtrain/internal/capi"

// Started operations of tables: like the methods without Start in their names, but they return at once. Slices,
// also of keys, must be memory of Alloc or Register; they belong to the library until the operation has finished.

// StartPush starts a Push.
func (t *Table[T]) StartPush(first int, values []T) (*Request, error) {
	return t.launch(span(capi.Table_push, first, values))
}

// StartPull starts a Pull.
func (t *Table[T]) StartPull(first int, values []T) (*Request, error) {
	return t.launch(span(capi.Table_pull, first, values))
}

// StartPushPull starts a PushPull.
func (t *Table[T]) StartPushPull(first int, push, pull []T) (*Request, error) {
	return t.launch(t.pushPull(first, push, pull))
}

// StartSet starts a Set.
func (t *Table[T]) StartSet(first int, values []T) (*Request, error) {
	return t.launch(span(capi.Table_set, first, values))
}

// StartPushRows starts a PushRows.
func (t *Table[T]) StartPushRows(keys []uint64, values []T) (*Request, error) {
	return t.launch(rows(capi.Table_push_rows, keys, values, t.dim))
}

// StartPullRows starts a PullRows.
func (t *Table[T]) StartPullRows(keys []uint64, values []T) (*Request, error) {
	return t.launch(rows(capi.Table_pull_rows, keys, values, t.dim))
}

// StartPushPullRows starts a PushPullRows.
func (t *Table[T]) StartPushPullRows(keys []uint64, push, pull []T) (*Request, error) {
	return t.launch(t.pushPullRows(keys, push, pull))
}

// StartSetRows starts a SetRows.
func (t *Table[T]) StartSetRows(keys []uint64, values []T) (*Request, error) {
	return t.launch(rows(capi.Table_set_rows, keys, values, t.dim))
}

// StartEraseRows starts an EraseRows.
func (t *Table[T]) StartEraseRows(keys []uint64) (*Request, error) {
	return t.launch(t.eraseRows(keys))
}

// StartClock starts a Clock.
func (t *Table[T]) StartClock() (*Request, error) { return t.begin(capi.Table_clock) }

// StartWaitReady starts a WaitReady.
func (t *Table[T]) StartWaitReady() (*Request, error) { return t.begin(capi.Table_wait_ready) }

// StartSetReady starts a SetReady.
func (t *Table[T]) StartSetReady() (*Request, error) { return t.begin(capi.Table_set_ready) }

// StartSetRate starts a SetRate.
func (t *Table[T]) StartSetRate(rate float64) (*Request, error) {
	return t.begin(func(table uintptr, call *capi.Call) *capi.Failure {
		return capi.Table_set_rate(table, rate, call)
	})
}

// StartSetUpdates starts a SetUpdates.
func (t *Table[T]) StartSetUpdates(count uint64) (*Request, error) {
	return t.begin(func(table uintptr, call *capi.Call) *capi.Failure {
		return capi.Table_set_updates(table, count, call)
	})
}

// StartCountRows starts a CountRows; count[0] is written.
func (t *Table[T]) StartCountRows(count []uint64) (*Request, error) {
	if len(count) == 0 {
		return nil, errorf(ErrInvalid, "StartCountRows: the slice for the count is empty")
	}
	return t.begin(func(table uintptr, call *capi.Call) *capi.Failure {
		return capi.Table_count_rows(table, start(count), call)
	}, viewOf(count))
}

// StartPullState starts a PullState.
func StartPullState[S, T Element](t *Table[T], index, first int, values []S) (*Request, error) {
	return t.launch(stateSpan(t, capi.Table_pull_state, index, first, values))
}

// StartSetState starts a SetState.
func StartSetState[S, T Element](t *Table[T], index, first int, values []S) (*Request, error) {
	return t.launch(stateSpan(t, capi.Table_set_state, index, first, values))
}

// StartPullStateRows starts a PullStateRows.
func StartPullStateRows[S, T Element](t *Table[T], index int, keys []uint64, values []S) (*Request,
	error) {
	return t.launch(stateRows(t, capi.Table_pull_state_rows, index, keys, values))
}

// StartSetStateRows starts a SetStateRows.
func StartSetStateRows[S, T Element](t *Table[T], index int, keys []uint64, values []S) (*Request,
	error) {
	return t.launch(stateRows(t, capi.Table_set_state_rows, index, keys, values))
}

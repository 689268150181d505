package dtrain

// SPDX-License-Identifier: Apache-2.0

import "dtrain.org/dtrain/internal/capi"

// TableStarter begins a table's operations and returns at once, as Starter does.
type TableStarter[T Element] struct{ table *Table[T] }

// Start begins operations.
func (t *Table[T]) Start() TableStarter[T] { return TableStarter[T]{t} }

// Push is as Table.Push.
func (s TableStarter[T]) Push(first int, values []T) (*Request, error) {
	return s.table.launch(span(capi.Table_push, first, values))
}

// Pull is as Table.Pull.
func (s TableStarter[T]) Pull(first int, values []T) (*Request, error) {
	return s.table.launch(span(capi.Table_pull, first, values))
}

// PushPull is as Table.PushPull.
func (s TableStarter[T]) PushPull(first int, push, pull []T) (*Request, error) {
	return s.table.launch(s.table.pushPull(first, push, pull))
}

// Set is as Table.Set.
func (s TableStarter[T]) Set(first int, values []T) (*Request, error) {
	return s.table.launch(span(capi.Table_set, first, values))
}

// PushRows is as Table.PushRows; keys are memory of Alloc or Register, too.
func (s TableStarter[T]) PushRows(keys []uint64, values []T) (*Request, error) {
	return s.table.launch(rows(capi.Table_push_rows, keys, values, s.table.dim))
}

// PullRows is as Table.PullRows.
func (s TableStarter[T]) PullRows(keys []uint64, values []T) (*Request, error) {
	return s.table.launch(rows(capi.Table_pull_rows, keys, values, s.table.dim))
}

// PushPullRows is as Table.PushPullRows.
func (s TableStarter[T]) PushPullRows(keys []uint64, push, pull []T) (*Request, error) {
	return s.table.launch(s.table.pushPullRows(keys, push, pull))
}

// SetRows is as Table.SetRows.
func (s TableStarter[T]) SetRows(keys []uint64, values []T) (*Request, error) {
	return s.table.launch(rows(capi.Table_set_rows, keys, values, s.table.dim))
}

// EraseRows is as Table.EraseRows.
func (s TableStarter[T]) EraseRows(keys []uint64) (*Request, error) {
	return s.table.launch(s.table.eraseRows(keys))
}

// Clock is as Table.Clock.
func (s TableStarter[T]) Clock() (*Request, error) { return s.table.begin(capi.Table_clock) }

// WaitReady is as Table.WaitReady.
func (s TableStarter[T]) WaitReady() (*Request, error) { return s.table.begin(capi.Table_wait_ready) }

// SetReady is as Table.SetReady.
func (s TableStarter[T]) SetReady() (*Request, error) { return s.table.begin(capi.Table_set_ready) }

// SetRate is as Table.SetRate.
func (s TableStarter[T]) SetRate(rate float64) (*Request, error) {
	return s.table.begin(func(table uintptr, call *capi.Call) *capi.Failure {
		return capi.Table_set_rate(table, rate, call)
	})
}

// CountRows is as Table.CountRows; count[0] is written.
func (s TableStarter[T]) CountRows(count []uint64) (*Request, error) {
	if len(count) == 0 {
		return nil, errorf(ErrInvalid, "there is no place for the count")
	}
	return s.table.begin(func(table uintptr, call *capi.Call) *capi.Failure {
		return capi.Table_count_rows(table, start(count), call)
	}, viewOf(count))
}

// StartPullState is as PullState and returns at once.
func StartPullState[S, T Element](t *Table[T], index, first int, values []S) (*Request, error) {
	return t.launch(stateSpan(t, capi.Table_pull_state, index, first, values))
}

// StartSetState is as SetState and returns at once.
func StartSetState[S, T Element](t *Table[T], index, first int, values []S) (*Request, error) {
	return t.launch(stateSpan(t, capi.Table_set_state, index, first, values))
}

// StartPullStateRows is as PullStateRows and returns at once.
func StartPullStateRows[S, T Element](t *Table[T], index int, keys []uint64, values []S) (*Request,
	error) {
	return t.launch(stateRows(t, capi.Table_pull_state_rows, index, keys, values))
}

// StartSetStateRows is as SetStateRows and returns at once.
func StartSetStateRows[S, T Element](t *Table[T], index int, keys []uint64, values []S) (*Request,
	error) {
	return t.launch(stateRows(t, capi.Table_set_state_rows, index, keys, values))
}

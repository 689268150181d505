package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"time"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// State is an array of the rule's state, with its numbers counted (for rows by keys: per row).
type State struct {
	Index int
	Name  string
	Type  DType
	Count int
}

// States returns the state arrays of the rule.
func (t *Table[T]) States() ([]State, error) {
	handle, err := t.enter()
	if err != nil {
		return nil, err
	}
	defer t.object.leave()
	return statesOf(handle), nil
}

func statesOf(table uintptr) (all []State) {
	for {
		var name uintptr
		var dtype uint32
		var count uint64
		if failure := capi.Table_describe_state(table, uint32(len(all)), unsafe.Pointer(&name),
			unsafe.Pointer(&dtype), unsafe.Pointer(&count)); failure != nil {
			return all
		}
		all = append(all, State{len(all), capi.Text(name), DType(dtype), int(count)})
	}
}

// state checks that a slice has the type of a state array.
func state[S, T Element](t *Table[T], index int) (State, error) {
	all, err := t.States()
	if err != nil {
		return State{}, err
	}
	if index < 0 || index >= len(all) {
		return State{}, errorf(ErrNotFound, "this table's rule has %d state arrays; there is no array %d",
			len(all), index)
	}
	if all[index].Type != TypeOf[S]() {
		return State{}, errorf(ErrInvalid, "state %q has elements of another type", all[index].Name)
	}
	return all[index], nil
}

type stateRange = func(table uintptr, index uint32, first, count uint64, values unsafe.Pointer,
	call *capi.Call) *capi.Failure

func stateSpan[S, T Element](t *Table[T], function stateRange, index, first int, values []S) request {
	if _, err := state[S](t, index); err != nil {
		return request{err: err}
	}
	return span(func(table uintptr, first, count uint64, values unsafe.Pointer,
		call *capi.Call) *capi.Failure {
		return function(table, uint32(index), first, count, values, call)
	}, first, values)
}

type stateKeys = func(table uintptr, index uint32, keys unsafe.Pointer, count uint64,
	values unsafe.Pointer, call *capi.Call) *capi.Failure

func stateRows[S, T Element](t *Table[T], function stateKeys, index int, keys []uint64,
	values []S) request {
	found, err := state[S](t, index)
	if err != nil {
		return request{err: err}
	}
	return rows(func(table uintptr, keys unsafe.Pointer, count uint64, values unsafe.Pointer,
		call *capi.Call) *capi.Failure {
		return function(table, uint32(index), keys, count, values, call)
	}, keys, values, found.Count)
}

// PullState reads numbers of a state array.
func PullState[S, T Element](ctx context.Context, t *Table[T], index, first int, values []S) error {
	return done(t.block(ctx, stateSpan(t, capi.Table_pull_state, index, first, values)))
}

// SetState overwrites numbers of a state array.
func SetState[S, T Element](ctx context.Context, t *Table[T], index, first int, values []S) error {
	return done(t.block(ctx, stateSpan(t, capi.Table_set_state, index, first, values)))
}

// PullStateRows reads the state of rows.
func PullStateRows[S, T Element](ctx context.Context, t *Table[T], index int, keys []uint64,
	values []S) error {
	return done(t.block(ctx, stateRows(t, capi.Table_pull_state_rows, index, keys, values)))
}

// SetStateRows overwrites the state of rows.
func SetStateRows[S, T Element](ctx context.Context, t *Table[T], index int, keys []uint64,
	values []S) error {
	return done(t.block(ctx, stateRows(t, capi.Table_set_state_rows, index, keys, values)))
}

// Locate returns the servers that hold these elements, or keys.
func (t *Table[T]) Locate(items []uint64) ([]uint32, error) {
	if err := onHost(viewOf(items), "items"); err != nil {
		return nil, err
	}
	servers := make([]uint32, len(items))
	err := t.call(func(table uintptr) *capi.Failure {
		return capi.Table_locate(table, start(items), uint64(len(items)), start(servers))
	})
	return servers, err
}

// TableServer is what a server holds of a table.
type TableServer struct {
	Rank             int // of the worker that is this server; -1: a dedicated server
	Elements, Ranges uint64
	Share            float64
}

// Servers returns what each server holds of the table.
func (t *Table[T]) Servers() ([]TableServer, error) {
	handle, err := t.enter()
	if err != nil {
		return nil, err
	}
	defer t.object.leave()
	s := capi.NewTable_server()
	defer capi.DeleteTable_server(s)
	var all []TableServer
	for capi.Table_describe_server(handle, uint32(len(all)), s.Swigcptr()) == nil {
		all = append(all, TableServer{int(s.GetRank()), s.GetElements(), s.GetRanges(), s.GetShare()})
	}
	return all, nil
}

// TableStats counts this worker's requests (dtrain_table_stats_t).
type TableStats struct {
	Requests, Repeats, Refused, Dropped, Elements uint64
	SentBytes, ReceivedBytes                      uint64
	LatencySum                                    time.Duration
	StalenessSum                                  uint64
	Latency, Staleness                            []uint64 // buckets: zeros, then powers of two (ns)
	Stale, NotFinite                              uint64
}

// Stats returns the counts of requests to one server, or to all (-1).
func (t *Table[T]) Stats(server int) (TableStats, error) {
	s := capi.NewTable_stats()
	defer capi.DeleteTable_stats(s)
	err := t.call(func(table uintptr) *capi.Failure {
		return capi.Stats_table(table, int32(clamp(server)), s.Swigcptr())
	})
	if err != nil {
		return TableStats{}, err
	}
	return TableStats{s.GetRequests(), s.GetRepeats(), s.GetRefused(), s.GetDropped(), s.GetElements(),
		s.GetSent_bytes(), s.GetReceived_bytes(), time.Duration(s.GetLatency_sum()), s.GetStaleness_sum(),
		buckets(s.GetLatency()), buckets(s.GetStaleness()), s.GetStale(), s.GetNot_finite()}, nil
}

func buckets(first *uint64) []uint64 {
	return append([]uint64(nil), unsafe.Slice(first, capi.DTRAIN_STATS_BUCKETS)...)
}

package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// AnyTable is a *Table of any type.
type AnyTable interface {
	enter() (uintptr, error)
	asObject() *object
}

func (t *Table[T]) asObject() *object { return t.object }

// Newest is the step of the newest complete checkpoint, for RestoreCheckpoint.
const Newest uint64 = capi.DTRAIN_CHECKPOINT_NEWEST

// CheckpointParams makes a checkpoint due only when this many steps, or this much time, have passed
// since the last one; without both it is always due.
type CheckpointParams struct {
	EverySteps uint32
	Every      time.Duration
}

// SaveCheckpoint writes tables to the folder of the option checkpoint.directory; one worker calls
// it. It reports whether a checkpoint was due. The deadline of ctx ends it, but not its
// cancellation.
func SaveCheckpoint(ctx context.Context, tables []AnyTable, step uint64,
	params CheckpointParams) (saved bool, err error) {
	var written int32
	err = checkpoint(ctx, tables, params, func(list unsafe.Pointer, count uint32, p uintptr) *capi.Failure {
		return capi.Checkpoint_save(list, count, step, p, unsafe.Pointer(&written))
	})
	return written != 0, err
}

// RestoreCheckpoint restores tables from a checkpoint, for example Newest, and returns its step;
// one worker calls it. The deadline of ctx ends it, but not its cancellation.
func RestoreCheckpoint(ctx context.Context, tables []AnyTable, step uint64) (restored uint64, err error) {
	err = checkpoint(ctx, tables, CheckpointParams{},
		func(list unsafe.Pointer, count uint32, p uintptr) *capi.Failure {
			return capi.Checkpoint_restore(list, count, step, p, unsafe.Pointer(&restored))
		})
	return restored, err
}

// WaitCheckpoint waits until the newest checkpoint that has all tables is not that of the step after
// (Newest: until there is one), and returns its step. An evaluator calls it for tables that it has
// made in a job of its own, and then RestoreCheckpoint. The deadline of ctx ends it, but not its
// cancellation.
func WaitCheckpoint(ctx context.Context, tables []AnyTable, after uint64) (step uint64, err error) {
	err = checkpoint(ctx, tables, CheckpointParams{},
		func(list unsafe.Pointer, count uint32, p uintptr) *capi.Failure {
			return capi.Checkpoint_wait(list, count, after, p, unsafe.Pointer(&step))
		})
	return step, err
}

func checkpoint(ctx context.Context, tables []AnyTable, params CheckpointParams,
	run func(list unsafe.Pointer, count uint32, params uintptr) *capi.Failure) error {
	timeout, err := blockingTimeout(ctx, 0)
	if err != nil {
		return err
	}
	p := capi.NewCheckpoint_params()
	defer capi.DeleteCheckpoint_params(p)
	p.SetTimeout_ns(timeout)
	p.SetEvery_steps(params.EverySteps)
	p.SetEvery_ns(int64(params.Every))
	handles := make([]uintptr, len(tables))
	for i, table := range tables {
		if table == nil {
			return errorf(ErrInvalid, "table %d is nil", i)
		}
		if handles[i], err = table.enter(); err != nil {
			return err
		}
		defer table.asObject().leave()
	}
	return errorOf(run(start(handles), uint32(len(handles)), p.Swigcptr()))
}

// NewestCheckpoint returns the step of the newest complete checkpoint; ErrNotFound if there is
// none.
func NewestCheckpoint(table AnyTable) (step uint64, err error) {
	handle, err := table.enter()
	if err != nil {
		return 0, err
	}
	defer table.asObject().leave()
	return step, errorOf(capi.Checkpoint_newest(handle, unsafe.Pointer(&step)))
}

// Restored reports whether the table was restored from a checkpoint (option checkpoint.restore),
// and its step.
func (t *Table[T]) Restored() (step uint64, restored bool, err error) {
	err = t.call(func(handle uintptr) *capi.Failure {
		return capi.Table_restored(handle, unsafe.Pointer(&step))
	})
	if errors.Is(err, ErrNotFound) {
		return 0, false, nil
	}
	return step, err == nil, err
}

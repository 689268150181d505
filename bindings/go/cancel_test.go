package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"dtrain.org/dtrain"
)

func TestCanceledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	err := dtrain.AllReduce(ctx, world, []float32{1}, dtrain.Sum)
	refused(t, err, dtrain.ErrCanceled)
	equal(t, errors.Is(err, context.Canceled), true)
	ctx, cancel = context.WithTimeout(background, -time.Second)
	defer cancel()
	err = dtrain.Barrier(ctx, world)
	refused(t, err, dtrain.ErrTimeout)
	equal(t, errors.Is(err, context.DeadlineExceeded), true)
}

func TestCanceledReceive(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	x := make([]byte, 1)
	var all sync.WaitGroup
	for i := 0; i < 3; i++ { // they share the watch of ctx
		all.Add(1)
		go func(tag uint32) {
			defer all.Done()
			_, err := dtrain.Recv(ctx, world, make([]byte, 1), world.Rank(), 100+tag)
			refused(t, err, dtrain.ErrCanceled)
			equal(t, errors.Is(err, context.Canceled), true)
		}(uint32(i))
	}
	cancel()
	all.Wait()
	// The canceled receive takes no later message.
	memory, err := dtrain.Alloc[byte](job, 1)
	check(t, err)
	defer memory.Close()
	memory.Data[0] = 42
	sent, err := dtrain.StartSend(world, memory.Data, world.Rank(), 100)
	check(t, err)
	_, err = dtrain.Recv(background, world, x, world.Rank(), 100)
	check(t, err)
	equal(t, x[0], byte(42))
	check(t, wait(sent))
}

func TestCanceledCollective(t *testing.T) {
	if world.Size() == 1 {
		t.Skip("needs two ranks")
	}
	comm, err := world.Duplicate()
	check(t, err)
	defer comm.Close()
	check(t, dtrain.Barrier(background, world)) // all have it
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if world.Rank() == 0 {
		cancelled := make(chan struct{})
		go func() { cancel(); close(cancelled) }()
		err = dtrain.AllReduce(ctx, comm, make([]float32, 1000), dtrain.Sum)
		<-cancelled
		equal(t, errors.Is(err, context.Canceled), true)
		if errors.Is(err, dtrain.ErrCanceled) { // canceled before it began
			check(t, comm.Abort("canceled"))
		}
	} else {
		_, err = dtrain.Recv(background, comm, make([]byte, 1), 0, 1)
		refused(t, err, dtrain.ErrAborted)
	}
	refused(t, comm.Err(), dtrain.ErrAborted)
	check(t, dtrain.Barrier(background, world)) // other communicators still work
}

func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(background, 30*time.Millisecond)
	defer cancel()
	_, err := dtrain.Recv(ctx, world, make([]byte, 1), world.Rank(), 200)
	refused(t, err, dtrain.ErrTimeout)
	equal(t, errors.Is(err, context.DeadlineExceeded), true)
	// A shorter timeout of the operation is not reported as ctx's deadline.
	ctx, cancel = context.WithTimeout(background, time.Hour)
	defer cancel()
	brief := world.With(dtrain.Params{Timeout: time.Millisecond})
	_, err = dtrain.Recv(ctx, brief, make([]byte, 1), world.Rank(), 200)
	refused(t, err, dtrain.ErrTimeout)
	equal(t, errors.Is(err, context.DeadlineExceeded), false)
}

package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"dtrain.org/dtrain"
)

func wait(r *dtrain.Request) error {
	_, err := r.Wait(background)
	return err
}

func alloc[T dtrain.Element](t *testing.T, count int) *dtrain.Memory[T] {
	t.Helper()
	memory, err := dtrain.Alloc[T](job, count)
	check(t, err)
	t.Cleanup(func() { check(t, memory.Close()) })
	return memory
}

func TestStarted(t *testing.T) {
	memory := alloc[float32](t, 30)
	var requests []*dtrain.Request
	for i := 0; i < 10; i++ {
		part := memory.Data[3*i : 3*i+3]
		copy(part, mine(world.Rank(), 3))
		r, err := dtrain.StartAllReduceTo(world, part, part, dtrain.Sum)
		check(t, err)
		requests = append(requests, r)
	}
	for i, r := range requests {
		<-r.Done()
		check(t, r.Err())
		equal(t, memory.Data[3*i:3*i+3], total(3))
	}
}

func TestAllStarted(t *testing.T) {
	rank, size := world.Rank(), world.Size()
	x, all := alloc[float32](t, 2).Data, alloc[float32](t, 2*size).Data
	twos := make([]int, size)
	displs := make([]int, size)
	for i := range twos {
		twos[i], displs[i] = 2, 2*i
	}
	copy(x, mine(rank, 2))
	run := func(r *dtrain.Request, err error) {
		t.Helper()
		check(t, err)
		check(t, wait(r))
	}
	run(dtrain.StartAllGather(world, x, all))
	equal(t, all, gathered(two))
	run(dtrain.StartAllGatherV(world, x, all, twos, displs))
	equal(t, all, gathered(two))
	run(dtrain.StartAllToAll(world, all, all))
	run(dtrain.StartAllToAll(world, all, all))
	equal(t, all, gathered(two))
	run(dtrain.StartGather(world, x, all, 0))
	run(dtrain.StartScatter(world, all, x, 0))
	run(dtrain.StartGatherV(world, x, all, twos, nil, 0))
	run(dtrain.StartScatterV(world, all, x, twos, nil, 0))
	equal(t, x, mine(rank, 2))
	run(dtrain.StartReduceScatter(world, all, x, dtrain.Avg))
	equal(t, x, mine(rank, 2))
	run(dtrain.StartReduceScatterV(world, all, x, twos, dtrain.Avg))
	equal(t, x, mine(rank, 2))
	other := alloc[float32](t, 2*size).Data
	run(dtrain.StartAllToAllV(world, all, twos, nil, other, twos, displs))
	run(dtrain.StartReduce(world, x, x, dtrain.Max, 0))
	run(dtrain.StartBroadcast(world, x, 0))
	equal(t, x, mine(size-1, 2))
	run(dtrain.StartBarrier(world))
}

func TestPrepared(t *testing.T) {
	memory := alloc[int32](t, 1)
	r, err := dtrain.PrepareAllReduce(world, memory.Data, dtrain.Sum)
	check(t, err)
	refused(t, r.Err(), dtrain.ErrState)
	for i := 0; i < 100; i++ {
		memory.Data[0] = 1
		check(t, r.Start())
		check(t, wait(r))
		equal(t, int(memory.Data[0]), world.Size())
	}
	refused(t, memory.Close(), dtrain.ErrBusy)
	check(t, r.Close())
	check(t, r.Close())
	refused(t, r.Start(), dtrain.ErrState)
}

func TestGoMemoryIsRefused(t *testing.T) {
	_, err := dtrain.StartAllReduceTo(world, make([]float32, 1), make([]float32, 1), dtrain.Sum)
	refused(t, err, dtrain.ErrInvalid)
	_, err = dtrain.Register(job, make([]float32, 10000), true)
	refused(t, err, dtrain.ErrInvalid)
	memory := alloc[byte](t, 10)
	beyond := unsafe.Slice(&memory.Data[5], 6)
	_, err = dtrain.StartSend(world, beyond, world.Rank(), 0)
	refused(t, err, dtrain.ErrInvalid)
}

func TestRegistered(t *testing.T) {
	pages, err := syscall.Mmap(-1, 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	check(t, err)
	pages[0] = byte(world.Rank())
	for _, shared := range []bool{false, true} {
		memory, err := dtrain.Register(job, pages, shared)
		check(t, err)
		r, err := dtrain.StartBroadcast(world, pages, 0)
		check(t, err)
		check(t, wait(r))
		equal(t, pages[0], byte(0))
		check(t, memory.Close())
	}
	check(t, syscall.Munmap(pages))
}

func TestRequestsEnd(t *testing.T) {
	memory := alloc[byte](t, 1)
	r, err := dtrain.StartRecv(world, memory.Data, world.Rank(), 300)
	check(t, err)
	refused(t, r.Err(), dtrain.ErrState)
	ctx, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	_, err = r.Wait(ctx)
	equal(t, errors.Is(err, context.DeadlineExceeded), true)
	refused(t, memory.Close(), dtrain.ErrBusy)
	check(t, r.Cancel())
	refused(t, wait(r), dtrain.ErrCanceled)
	check(t, r.Cancel())
}

func TestManyGoroutines(t *testing.T) {
	var all sync.WaitGroup
	for g := 0; g < 8; g++ {
		memory := alloc[int64](t, 100)
		all.Add(1)
		go func(tag uint32) {
			defer all.Done()
			for i := 0; i < 50; i++ {
				sent, err := dtrain.StartSend(world, memory.Data, world.Rank(), tag)
				if err != nil {
					t.Error(err)
					return
				}
				x := make([]int64, 100)
				_, err = dtrain.Recv(background, world, x, world.Rank(), tag)
				if err == nil {
					err = wait(sent)
				}
				if err != nil || x[99] != int64(i)*int64(tag) {
					t.Error(fmt.Sprint(err, x[99]))
					return
				}
				memory.Data[99] += int64(tag)
			}
		}(uint32(400 + g))
	}
	all.Wait()
}

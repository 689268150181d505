package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"dtrain.org/dtrain"
)

var (
	job        *dtrain.Context
	world      *dtrain.Comm
	background = context.Background()
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if job, err = dtrain.NewContext(); err == nil {
			world, err = job.World()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := job.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

// mine is the input of a rank.
func mine(rank, count int) []float32 {
	x := make([]float32, count)
	for i := range x {
		x[i] = float32(10*rank + i)
	}
	return x
}

func gathered(count func(rank int) int) (all []float32) {
	for rank := 0; rank < world.Size(); rank++ {
		all = append(all, mine(rank, count(rank))...)
	}
	return all
}

func two(int) int { return 2 }

func more(rank int) int { return rank + 1 }

func counts() []int {
	c := make([]int, world.Size())
	for rank := range c {
		c[rank] = more(rank)
	}
	return c
}

// total is the sum of all ranks' mine.
func total(count int) []float32 {
	sum := make([]float32, count)
	for rank := 0; rank < world.Size(); rank++ {
		for i, x := range mine(rank, count) {
			sum[i] += x
		}
	}
	return sum
}

// scaled is size times this rank's input: its block of the sum of equal arrays.
func scaled(x []float32) []float32 {
	for i := range x {
		x[i] *= float32(world.Size())
	}
	return x
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func refused(t *testing.T, err error, status dtrain.Status) {
	t.Helper()
	if !errors.Is(err, status) {
		t.Fatalf("got %v, want %v", err, status)
	}
}

func TestAllReduce(t *testing.T) {
	x, out := mine(world.Rank(), 5), make([]float32, 5)
	check(t, dtrain.AllReduceTo(background, world, x, out, dtrain.Sum))
	equal(t, out, total(5))
	equal(t, x, mine(world.Rank(), 5))
	check(t, dtrain.AllReduce(background, world, x, dtrain.Sum))
	equal(t, x, total(5))
}

func reduceOnes[T dtrain.Element](t *testing.T, one, sum T) {
	x := []T{one, one, one}
	check(t, dtrain.AllReduce(background, world, x, dtrain.Sum))
	equal(t, x, []T{sum, sum, sum})
}

func TestAllTypes(t *testing.T) {
	n := world.Size()
	reduceOnes(t, float32(1), float32(n))
	reduceOnes(t, float64(1), float64(n))
	reduceOnes(t, int8(1), int8(n))
	reduceOnes(t, uint8(1), uint8(n))
	reduceOnes(t, int16(1), int16(n))
	reduceOnes(t, uint16(1), uint16(n))
	reduceOnes(t, int32(1), int32(n))
	reduceOnes(t, uint32(1), uint32(n))
	reduceOnes(t, int64(1), int64(n))
	reduceOnes(t, uint64(1), uint64(n))
	reduceOnes(t, dtrain.F16(0x3c00), []dtrain.F16{0, 0x3c00, 0x4000, 0x4200}[n])
	reduceOnes(t, dtrain.BF16(0x3f80), []dtrain.BF16{0, 0x3f80, 0x4000, 0x4040}[n])
}

func TestOps(t *testing.T) {
	n := world.Size()
	for _, c := range []struct {
		op   dtrain.Op
		want int32
	}{{dtrain.Max, int32(n - 1)}, {dtrain.Min, 0}, {dtrain.Avg, int32(n-1) / 2},
		{dtrain.BitOr, []int32{0, 0, 1, 3}[n]}, {dtrain.BitAnd, 0}} {
		x := []int32{int32(world.Rank())}
		check(t, dtrain.AllReduce(background, world, x, c.op))
		equal(t, x[0], c.want)
	}
	x := mine(world.Rank(), 4)
	check(t, dtrain.AllReduce(background, world.With(dtrain.Params{Prescale: 2, Postscale: 0.5}), x,
		dtrain.Sum))
	equal(t, x, total(4))
}

func TestArrayWithinStructWithPointers(t *testing.T) {
	model := &struct {
		name    string
		weights [4]float32
		next    *int
	}{name: "m", next: new(int)}
	copy(model.weights[:], mine(world.Rank(), 4))
	check(t, dtrain.AllReduce(background, world, model.weights[:], dtrain.Sum))
	equal(t, model.weights[:], total(4))
}

func TestRooted(t *testing.T) {
	for root := 0; root < world.Size(); root++ {
		isRoot := world.Rank() == root
		x, out := mine(world.Rank(), 2), []float32(nil)
		if isRoot {
			out = make([]float32, 2)
		}
		check(t, dtrain.Reduce(background, world, x, out, dtrain.Sum, root))
		if isRoot {
			equal(t, out, total(2))
			out = make([]float32, 2*world.Size())
		}
		check(t, dtrain.Gather(background, world, x, out, root))
		if isRoot {
			equal(t, out, gathered(two))
		}
		back := make([]float32, 2)
		check(t, dtrain.Scatter(background, world, out, back, root))
		equal(t, back, x)
		check(t, dtrain.Broadcast(background, world, x, root))
		equal(t, x, mine(root, 2))
	}
}

func TestBlocks(t *testing.T) {
	all, out := gathered(two), make([]float32, 2)
	check(t, dtrain.ReduceScatter(background, world, all, out, dtrain.Sum))
	equal(t, out, scaled(mine(world.Rank(), 2)))
	block := all[2*world.Rank() : 2*world.Rank()+2]
	check(t, dtrain.ReduceScatter(background, world, all, block, dtrain.Sum))
	equal(t, block, out)
	whole := make([]float32, 2*world.Size())
	check(t, dtrain.AllGather(background, world, mine(world.Rank(), 2), whole))
	equal(t, whole, gathered(two))
	x, y := make([]int64, world.Size()), make([]int64, world.Size())
	for j := range x {
		x[j] = int64(10*world.Rank() + j)
	}
	check(t, dtrain.AllToAll(background, world, x, y))
	for j := range y {
		equal(t, y[j], int64(10*j+world.Rank()))
	}
	check(t, dtrain.Barrier(background, world))
}

func TestRagged(t *testing.T) {
	rank, size, all := world.Rank(), world.Size(), gathered(more)
	out, x := make([]float32, len(all)), mine(rank, rank+1)
	check(t, dtrain.AllGatherV(background, world, x, out, counts(), nil))
	equal(t, out, all)
	wide, displs := make([]float32, 3*size), make([]int, size)
	for j := range displs {
		displs[j] = 3 * j
	}
	check(t, dtrain.AllGatherV(background, world, x, wide, counts(), displs))
	for j := range displs {
		equal(t, wide[3*j:3*j+j+1], mine(j, j+1))
	}
	var gathered, back = []float32(nil), make([]float32, rank+1)
	if rank == 0 {
		gathered = make([]float32, len(all))
	}
	check(t, dtrain.GatherV(background, world, x, gathered, counts(), nil, 0))
	check(t, dtrain.ScatterV(background, world, gathered, back, counts(), nil, 0))
	equal(t, back, x)
	check(t, dtrain.ReduceScatterV(background, world, all, back, counts(), dtrain.Sum))
	equal(t, back, scaled(x))
	send, same := []int32{}, make([]int, size)
	for j := 0; j < size; j++ {
		same[j] = rank + 1
		for i := 0; i <= j; i++ {
			send = append(send, int32(rank))
		}
	}
	recv := make([]int32, size*(rank+1))
	check(t, dtrain.AllToAllV(background, world, send, counts(), nil, recv, same, nil))
	for i, from := range recv {
		equal(t, int(from), i/(rank+1))
	}
}

func TestNothing(t *testing.T) {
	check(t, dtrain.AllReduce(background, world, []float64{}, dtrain.Sum))
	check(t, dtrain.AllGather(background, world, []float64(nil), nil))
}

func TestSlicesThatAreTooShort(t *testing.T) {
	x, c := make([]float32, 6), counts()
	short, rank := make([]float32, 5), world.Rank()
	for _, err := range []error{
		dtrain.AllReduceTo(background, world, x, short, dtrain.Sum),
		dtrain.Reduce(background, world, x, short, dtrain.Sum, rank),
		dtrain.ReduceScatter(background, world, x, make([]float32, 7), dtrain.Sum),
		dtrain.AllGather(background, world, x, short),
		dtrain.Gather(background, world, x, short, rank),
		dtrain.Scatter(background, world, short, x, rank),
		dtrain.AllToAll(background, world, x, short),
		dtrain.AllGatherV(background, world, x[:rank+1], x[:1], append(c[1:], 9), nil),
		dtrain.AllGatherV(background, world, x[:rank+1], x, c[1:], nil),
		dtrain.AllGatherV(background, world, x[:rank+1], x, c, make([]int, 9)),
		dtrain.AllGatherV(background, world, x[:1], make([]float32, 50), []int{-1, 2, 2}[:len(c)], nil),
		dtrain.GatherV(background, world, x[:rank+1], short, c, []int{5, 1 << 62, 1 << 62}[:len(c)], rank),
		dtrain.ScatterV(background, world, x[:0], short[:rank+1], c, nil, rank),
		dtrain.ReduceScatterV(background, world, x[:0], short[:rank+1], c, dtrain.Sum),
		dtrain.AllToAllV(background, world, x, c, nil, x[:0], c, nil),
	} {
		refused(t, err, dtrain.ErrInvalid)
	}
	check(t, dtrain.Barrier(background, world)) // nothing was sent
}

func TestGroups(t *testing.T) {
	rank, size := world.Rank(), world.Size()
	half, err := world.Split(rank%2, -rank)
	check(t, err)
	x := []int32{1}
	check(t, dtrain.AllReduce(background, half, x, dtrain.Sum))
	equal(t, int(x[0]), (size+1-rank%2)/2)
	check(t, half.Close())
	none, err := world.Split(-1, 0)
	check(t, err)
	equal(t, none, (*dtrain.Comm)(nil))
	last, err := world.Subset([]int{size - 1})
	check(t, err)
	equal(t, last != nil, rank == size-1)
	if last := size - 1; last > 0 && (rank == 0 || rank == last) {
		ends := []int{last, 0}
		group, err := world.CreateGroup(ends, 3)
		check(t, err)
		equal(t, ends[group.Rank()], rank)
		check(t, dtrain.Barrier(background, group))
		check(t, group.Close())
		_, err = world.With(dtrain.Params{Timeout: 200 * time.Millisecond}).CreateGroup(ends, 4+rank)
		refused(t, err, dtrain.ErrTimeout)
	}
	_, err = world.CreateGroup([]int{}, 0)
	refused(t, err, dtrain.ErrInvalid)
	_, err = world.Subset([]int{0, 0})
	refused(t, err, dtrain.ErrInvalid)
	twin, err := world.Duplicate()
	check(t, err)
	equal(t, []int{twin.Rank(), twin.Size()}, []int{rank, size})
	check(t, dtrain.Barrier(background, world)) // all have it
	alive, err := twin.Shrink()
	check(t, err)
	equal(t, alive.Size(), size)
	check(t, alive.Close())
	check(t, twin.Close())
	check(t, world.Err())
	failed, err := world.Failed()
	check(t, err)
	equal(t, failed, []int{})
}

func TestMessages(t *testing.T) {
	rank, size := world.Rank(), world.Size()
	to, from := (rank+1)%size, (rank+size-1)%size
	memory, err := dtrain.Alloc[float32](job, 2)
	check(t, err)
	copy(memory.Data, mine(rank, 2))
	sent, err := dtrain.StartSend(world, memory.Data, to, 7)
	check(t, err)
	x := make([]float32, 4)
	result, err := dtrain.Recv(background, world, x, from, 7)
	check(t, err)
	equal(t, result, dtrain.Result{Bytes: 8, Peer: from})
	equal(t, x[:2], mine(from, 2))
	_, err = sent.Wait(background)
	check(t, err)
	check(t, memory.Close())
	if rank != 0 {
		check(t, dtrain.Send(background, world, x[:1], 0, 8))
		return
	}
	seen := map[int]bool{}
	for i := 1; i < size; i++ {
		result, err := dtrain.Recv(background, world, x, dtrain.AnyRank, 8)
		check(t, err)
		seen[result.Peer] = true
	}
	equal(t, len(seen), size-1)
}

package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"dtrain.org/dtrain"
	"dtrain.org/dtrain/internal/testgpu"
)

// needsGPU leaves a test to the run that has a driver, which go.devices has.
func needsGPU(t *testing.T) {
	if os.Getenv("DTRAIN_TEST_GPU") == "" {
		t.Skip("go.devices runs it")
	}
}

// onGPU is a copy of a slice on a GPU.
func onGPU[T dtrain.Element](t *testing.T, from []T) []T {
	t.Helper()
	var element T
	address := testgpu.Allocate(len(from) * int(unsafe.Sizeof(element)))
	testgpu.Write(address, from)
	memory, err := dtrain.DeviceMemory[T](job, address, len(from))
	check(t, err)
	t.Cleanup(func() {
		check(t, memory.Close())
		testgpu.Free(address)
	})
	return memory.Data
}

func onHost[T dtrain.Element](t *testing.T, from []T) []T {
	data := alloc[T](t, len(from)).Data
	copy(data, from)
	return data
}

func addressOf[T any](slice []T) uintptr { return uintptr(unsafe.Pointer(&slice[0])) }

func ramp(count int) []float32 {
	x := make([]float32, count)
	for i := range x {
		x[i] = float32((i*7+13*world.Rank())%59) + 0.37
	}
	return x
}

// allCalls runs every kind of call on slices that floats and keys make; it returns those with results.
func allCalls(t *testing.T, floats func([]float32) []float32, keys func([]uint64) []uint64) [][]float32 {
	const count = 3000
	peer := (world.Rank() + 1) % world.Size()
	x, out, all := floats(ramp(count)), floats(make([]float32, count)), floats(make([]float32, world.Size()*count))
	root, received, queued := floats(ramp(count)), floats(make([]float32, count)), floats(ramp(count))
	compressed, pulled, rows := floats(ramp(count)), floats(make([]float32, count)), floats(make([]float32, 200))
	check(t, dtrain.AllReduceTo(background, world, x, out, dtrain.Avg))
	check(t, dtrain.AllReduce(background, world.With(dtrain.Params{Prescale: 0.3}), x, dtrain.Sum))
	run := func(r *dtrain.Request, err error) {
		t.Helper()
		check(t, err)
		check(t, wait(r))
	}
	run(dtrain.StartAllGather(world, out, all))
	check(t, dtrain.Broadcast(background, world, root, world.Size()-1))
	sent, err := dtrain.StartSend(world, root, peer, 3)
	check(t, err)
	found, err := dtrain.Recv(background, world, received, dtrain.AnyRank, 3)
	check(t, err)
	equal(t, found.Bytes, 4*count)
	check(t, wait(sent))
	queue, err := dtrain.NewGradients(world, dtrain.GradientsParams{})
	check(t, err)
	run(dtrain.StartSubmit(queue, "x", queued, queued, dtrain.Avg))
	check(t, dtrain.Barrier(background, world))
	check(t, queue.Close())
	compressor, err := dtrain.NewCompressor(world, dtrain.CompressorParams{Kind: dtrain.CompressInt8, Count: count})
	check(t, err)
	check(t, dtrain.CompressedAllReduce(background, compressor, compressed, compressed, dtrain.Sum))
	check(t, compressor.Close())
	dense := table[float32](t, dtrain.TableParams{Length: count, Rule: dtrain.RuleSGD, LearningRate: 0.1,
		Consistency: dtrain.BSP})
	_, err = dense.Push(background, 0, floats(ramp(count)))
	check(t, err)
	check(t, dense.Clock(background))
	_, err = dense.Pull(background, 0, pulled)
	check(t, err)
	sparse := table[float32](t, dtrain.TableParams{Dim: 2, Rule: dtrain.RuleSGD, LearningRate: 0.1})
	wanted := make([]uint64, 100)
	for i := range wanted {
		wanted[i] = uint64(i*world.Size() + world.Rank())
	}
	wanted = keys(wanted)
	_, err = sparse.PushRows(background, wanted, floats(ramp(200)))
	check(t, err)
	_, err = sparse.PullRows(background, wanted, rows)
	check(t, err)
	return [][]float32{x, out, all, root, received, queued, compressed, pulled, rows}
}

func TestSameBitsOnGPU(t *testing.T) {
	needsGPU(t)
	var expected [][]float32
	t.Run("host", func(t *testing.T) {
		for _, slice := range allCalls(t, func(x []float32) []float32 { return onHost(t, x) },
			func(x []uint64) []uint64 { return onHost(t, x) }) {
			expected = append(expected, append([]float32{}, slice...))
		}
	})
	t.Run("gpu", func(t *testing.T) {
		for i, slice := range allCalls(t, func(x []float32) []float32 { return onGPU(t, x) },
			func(x []uint64) []uint64 { return onGPU(t, x) }) {
			equal(t, testgpu.Read[float32](addressOf(slice), len(slice)), expected[i])
		}
	})
}

func TestPartsOnGPU(t *testing.T) {
	needsGPU(t)
	n := float32(world.Size())
	x := onGPU(t, []float32{1, 2, 3, 4})
	check(t, dtrain.AllReduce(background, world, x[1:3], dtrain.Sum))
	equal(t, testgpu.Read[float32](addressOf(x), 4), []float32{1, 2 * n, 3 * n, 4})
	half := onGPU(t, []dtrain.BF16{0x3f80})
	check(t, dtrain.AllReduce(background, world.With(dtrain.Params{Prescale: 2}), half, dtrain.Max))
	equal(t, testgpu.Read[dtrain.BF16](addressOf(half), 1), []dtrain.BF16{0x4000})
	prepared, err := dtrain.PrepareAllReduce(world, x, dtrain.Max)
	check(t, err)
	check(t, prepared.Start())
	check(t, wait(prepared))
	check(t, prepared.Close())
}

func TestStreams(t *testing.T) {
	needsGPU(t)
	const count = 3000
	stream, x := testgpu.Stream(), onGPU(t, make([]byte, count))
	on := world.With(dtrain.Params{Stream: stream})
	for _, run := range []func() error{
		func() error { return dtrain.AllReduce(background, on, x, dtrain.Sum) },
		func() error {
			r, err := dtrain.StartAllReduce(on, x, dtrain.Sum)
			check(t, err)
			return wait(r)
		}} {
		testgpu.FillLater(stream, addressOf(x), 7, count)
		check(t, run())
		equal(t, testgpu.Read[byte](addressOf(x), count), full(count, byte(7*world.Size())))
	}
	for handle := uintptr(1); handle <= 2; handle++ {
		check(t, dtrain.AllReduce(background, world.With(dtrain.Params{Stream: handle}), x, dtrain.Max))
	}
	refused(t, dtrain.AllReduce(background, on, make([]byte, 4), dtrain.Sum), dtrain.ErrUnsupported)
}

func TestAllocatedOnGPU(t *testing.T) {
	needsGPU(t)
	const count = 30000
	for _, share := range []bool{false, true} {
		memory, err := dtrain.AllocDevice[float32](job, 0, count, share)
		check(t, err)
		testgpu.Write(addressOf(memory.Data), full(count, float32(2)))
		check(t, dtrain.AllReduce(background, world, memory.Data, dtrain.Sum))
		equal(t, testgpu.Read[float32](addressOf(memory.Data), count), full(count, float32(2*world.Size())))
		_, err = dtrain.ClipByGlobalNorm([][]float32{memory.Data}, 1)
		refused(t, err, dtrain.ErrUnsupported)
		check(t, memory.Close())
	}
	for _, bad := range []struct{ device, count int }{{0, 0}, {0, -1}, {0, 1 << 60}, {-1, 4}, {99, 4}, {1 << 40, 4}} {
		_, err := dtrain.AllocDevice[float32](job, bad.device, bad.count, false)
		refused(t, err, dtrain.ErrInvalid)
	}
	without, err := dtrain.NewContext(dtrain.WithOption("accelerators", "none"))
	check(t, err)
	_, err = dtrain.AllocDevice[float32](without, 0, 4, false)
	refused(t, err, dtrain.ErrUnsupported)
	check(t, without.Close())
}

func TestRefusedOnGPU(t *testing.T) {
	needsGPU(t)
	address := testgpu.Allocate(16)
	for _, bad := range []struct {
		address uintptr
		count   int
		text    string
	}{{0, 4, "the address is 0"}, {address, -1, "cannot be -1 elements"}, {address, 0, "cannot be 0 elements"},
		{address, 1 << 60, "cannot be"}, {^uintptr(0) - 3, 2, "cannot be 2 elements"},
		{address + 2, 1, "not a multiple of 4"}} {
		_, err := dtrain.DeviceMemory[float32](job, bad.address, bad.count)
		refused(t, err, dtrain.ErrInvalid)
		equal(t, strings.Contains(fmt.Sprint(err), bad.text), true)
	}
	beyond, err := dtrain.DeviceMemory[float32](job, address, 5)
	check(t, err)
	refused(t, dtrain.AllReduce(background, world, beyond.Data, dtrain.Sum), dtrain.ErrInvalid)
	check(t, beyond.Close())
	memory, err := dtrain.DeviceMemory[float32](job, address, 4)
	check(t, err)
	_, err = dtrain.ClipByGlobalNorm([][]float32{{1}, memory.Data[1:]}, 1)
	refused(t, err, dtrain.ErrUnsupported)
	equal(t, strings.Contains(fmt.Sprint(err), "arrays[1] is memory of a GPU"), true)
	_, err = dtrain.Register(job, memory.Data, false)
	refused(t, err, dtrain.ErrUnsupported)
	writer, err := dtrain.OpenWriter(filepath.Join(t.TempDir(), "x"))
	check(t, err)
	refused(t, writer.Append(onGPU(t, []byte{1})), dtrain.ErrUnsupported)
	check(t, writer.Close())
	_, err = table[float32](t, dtrain.TableParams{Length: 4}).Locate(onGPU(t, []uint64{1}))
	refused(t, err, dtrain.ErrUnsupported)
	request, err := dtrain.StartRecv(world, memory.Data, world.Rank(), 9)
	check(t, err)
	refused(t, memory.Close(), dtrain.ErrBusy)
	check(t, dtrain.Send(background, world, []float32{1, 2, 3, 4}, world.Rank(), 9))
	check(t, wait(request))
	check(t, memory.Close())
	testgpu.Free(address)
	refused(t, dtrain.AllReduce(background, world, memory.Data, dtrain.Sum), dtrain.ErrInvalid)
	without, err := dtrain.NewContext(dtrain.WithOption("accelerators", "none"))
	check(t, err)
	defer without.Close()
	_, err = dtrain.DeviceMemory[float32](without, testgpu.Allocate(4), 1)
	refused(t, err, dtrain.ErrUnsupported)
	equal(t, strings.Contains(fmt.Sprint(err), `the option accelerators is "none"`), true)
}

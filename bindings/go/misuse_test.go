package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dtrain.org/dtrain"
)

// alone is a context with a job of this process only.
func alone(t *testing.T, options ...dtrain.Option) (*dtrain.Context, *dtrain.Comm) {
	t.Helper()
	c, err := dtrain.NewContext(options...)
	check(t, err)
	comm, err := c.Join(background, dtrain.JoinParams{Size: 1,
		AllGather: func(mine []byte) ([][]byte, error) { return [][]byte{mine}, nil }})
	check(t, err)
	return c, comm
}

func TestUseAfterClose(t *testing.T) {
	c, comm := alone(t)
	memory, err := dtrain.Alloc[byte](c, 1)
	check(t, err)
	check(t, c.Close())
	check(t, c.Close())
	check(t, comm.Close())
	check(t, memory.Close())
	_, joined := c.World()
	_, described := c.Describe()
	_, started := dtrain.StartBarrier(comm)
	_, allocated := dtrain.Alloc[byte](c, 1)
	_, split := comm.Split(0, 0)
	for _, err := range []error{dtrain.Barrier(background, comm), joined, described, started, allocated, split,
		dtrain.AllReduce(background, comm, []float32{1}, dtrain.Sum), comm.Err(), c.StopTimeline()} {
		refused(t, err, dtrain.ErrState)
		equal(t, strings.Contains(err.Error(), "is closed"), true)
	}
}

func TestCloseEndsWhatIsInFlight(t *testing.T) {
	c, comm := alone(t)
	memory, err := dtrain.Alloc[byte](c, 1)
	check(t, err)
	r, err := dtrain.StartRecv(comm, memory.Data, 0, 0)
	check(t, err)
	check(t, c.Close())
	refused(t, wait(r), dtrain.ErrCanceled)
}

func TestCloseDuringACall(t *testing.T) {
	c, comm := alone(t)
	ended := make(chan error)
	go func() {
		_, err := dtrain.Recv(background, comm, make([]byte, 1), 0, 0)
		ended <- err
	}()
	for busy := false; !busy; { // until the goroutine is in the call
		twin, err := comm.Duplicate()
		check(t, err)
		check(t, twin.Close())
		err = comm.Close()
		busy = errors.Is(err, dtrain.ErrBusy)
		if err == nil { // it comes too late
			refused(t, <-ended, dtrain.ErrState)
			check(t, c.Close())
			return
		}
	}
	refused(t, c.Close(), dtrain.ErrBusy)
	check(t, comm.Abort("enough"))
	refused(t, <-ended, dtrain.ErrAborted)
	check(t, c.Close())
}

func TestErrors(t *testing.T) {
	err := dtrain.Broadcast(background, world, []byte{1}, 1<<40)
	var found *dtrain.Error
	equal(t, errors.As(err, &found), true)
	equal(t, found.Status, dtrain.ErrInvalid)
	equal(t, found.Rank, -1)
	equal(t, strings.Contains(found.Text, "root"), true)
	equal(t, dtrain.ErrPeer.Name(), "DTRAIN_ERR_PEER")
	equal(t, dtrain.ErrPeer.Error(), "dtrain: peer failed")
	_, err = dtrain.NewContext(dtrain.WithOption("op.timeouts", "1s"))
	refused(t, err, dtrain.ErrNotFound)
	equal(t, strings.Contains(err.Error(), "op.timeout"), true)
	_, err = dtrain.NewContext(dtrain.WithOptionsFile("/no/such/file"))
	refused(t, err, dtrain.ErrNotFound)
	refused(t, dtrain.AllReduce(background, world, []float32{1}, dtrain.BitAnd), dtrain.ErrInvalid)
}

func TestTextsWithZeros(t *testing.T) {
	c, comm := alone(t)
	queue, err := dtrain.NewGradients(comm, dtrain.GradientsParams{})
	check(t, err)
	x := []float32{1}
	for i, err := range []error{
		second(dtrain.NewContext(dtrain.WithOption("op.timeout", "1s\x00"))),
		second(dtrain.NewContext(dtrain.WithOption("op.timeout\x00s", "1s"))),
		second(dtrain.NewContext(dtrain.WithOptionsFile("/dev/null\x00"))),
		second(dtrain.OptionValue("op.timeout\x00")), c.StartTimeline("\x00"), c.MarkTimeline("a\x00"),
		comm.Tune("\x00"), second(dtrain.OpenReader([]string{"/dev/null\x00"}, dtrain.ReaderParams{})),
		second(dtrain.OpenWriter("\x00")),
		second(c.Join(background, dtrain.JoinParams{Rendezvous: "env\x00"})),
		second(c.Serve(background, dtrain.ServeParams{Rendezvous: "env\x00"})),
		second(dtrain.NewTable[float32](comm, "a\x00b", dtrain.TableParams{Length: 1})),
		dtrain.Submit(background, queue, "a\x00b", x, x, dtrain.Sum),
		second(dtrain.SaveCheckpoint(background, []dtrain.AnyTable{nil}, 1, dtrain.CheckpointParams{})),
	} {
		if !errors.Is(err, dtrain.ErrInvalid) || !strings.Contains(err.Error(), "0 ") {
			t.Errorf("%d: %v", i, err)
		}
	}
	check(t, c.Close())
}

func TestGuiltyRank(t *testing.T) {
	if world.Size() == 1 {
		t.Skip("needs two ranks")
	}
	comm, err := world.Duplicate()
	check(t, err)
	defer comm.Close()
	check(t, dtrain.Barrier(background, world)) // all have it
	refused(t, dtrain.AllReduce(background, comm, make([]float32, 1+world.Rank()), dtrain.Sum),
		dtrain.ErrMismatch)
}

func TestFailingExchange(t *testing.T) {
	c, err := dtrain.NewContext()
	check(t, err)
	defer c.Close()
	thrown := &os.PathError{Op: "exchange", Path: "network", Err: os.ErrDeadlineExceeded}
	for _, exchange := range []func([]byte) ([][]byte, error){
		func([]byte) ([][]byte, error) { return nil, fmt.Errorf("no exchange: %w", thrown) },
		func([]byte) ([][]byte, error) { panic(thrown) },
	} {
		_, err := c.Join(background, dtrain.JoinParams{Size: 2, AllGather: exchange})
		var found *dtrain.Error
		equal(t, errors.As(err, &found), true)
		var cause *os.PathError
		equal(t, errors.As(err, &cause), true)
		equal(t, cause, thrown)
		equal(t, errors.Is(err, os.ErrDeadlineExceeded), true)
		equal(t, strings.Contains(err.Error(), "exchange network"), true)
		_, err = c.Serve(background, dtrain.ServeParams{Size: 1, Servers: 1, AllGather: exchange})
		equal(t, errors.Is(err, os.ErrDeadlineExceeded), true)
	}
	for _, exchange := range []func([]byte) ([][]byte, error){
		func([]byte) ([][]byte, error) { return [][]byte{{1}, {1}}, nil },
		func([]byte) ([][]byte, error) { panic("no exchange") },
	} {
		_, err := c.Join(background, dtrain.JoinParams{Size: 2, AllGather: exchange})
		equal(t, errors.Unwrap(err) != nil, true)
		var reason *dtrain.PanicError
		if errors.As(err, &reason) {
			equal(t, reason.Value, any("no exchange"))
		}
	}
	_, err = c.Join(background, dtrain.JoinParams{Servers: 5,
		AllGather: func([]byte) ([][]byte, error) { return make([][]byte, 5), nil }})
	refused(t, err, dtrain.ErrInvalid)
}

func TestLog(t *testing.T) {
	lines := make(chan string, 1000)
	c, comm := alone(t, dtrain.WithOption("explain", "yes"),
		dtrain.WithLog(func(level dtrain.LogLevel, line string) { lines <- level.String() + line }))
	check(t, dtrain.AllReduce(background, comm, []float32{1}, dtrain.Sum))
	check(t, c.Close())
	equal(t, len(lines) > 0, true)
	var once sync.Once
	c, comm = alone(t, dtrain.WithOption("explain", "yes"), dtrain.WithLog(
		func(dtrain.LogLevel, string) { once.Do(func() { panic("this is reported, no more") }) }))
	check(t, dtrain.AllReduce(background, comm, []float32{1}, dtrain.Sum))
	check(t, c.Close())
}

func TestDescriptions(t *testing.T) {
	description, err := job.Describe()
	check(t, err)
	equal(t, description["transports"] != nil, true)
	stats, err := job.DeviceStats(0)
	equal(t, err == nil && stats.Copied > 0 || errors.Is(err, dtrain.ErrUnsupported), true)
	_, err = job.DeviceStats(100)
	refused(t, err, dtrain.ErrNotFound)
	equal(t, dtrain.Version() != "", true)
	equal(t, len(dtrain.DescribeOptions()) > 10, true)
	t.Setenv("DTRAIN_OP_TIMEOUT", "7s")
	value, err := dtrain.OptionValue("op.timeout")
	check(t, err)
	equal(t, value, "7s")
	_, err = dtrain.OptionValue("op.timeot")
	refused(t, err, dtrain.ErrNotFound)
	c, comm := alone(t)
	path := filepath.Join(t.TempDir(), "timeline.json")
	check(t, c.StartTimeline(path+"%r"))
	check(t, c.MarkTimeline("here"))
	check(t, dtrain.Barrier(background, comm))
	check(t, c.StopTimeline())
	refused(t, c.StopTimeline(), dtrain.ErrState)
	text, err := os.ReadFile(path + "0")
	check(t, err)
	equal(t, strings.Contains(string(text), "here"), true)
	check(t, c.Close())
}

// TestEndInFlight ends a process, which runs this program again, while operations are in flight.
func TestEndInFlight(t *testing.T) {
	if os.Getenv("END_IN_FLIGHT") != "" {
		c, comm := alone(t)
		memory, err := dtrain.Alloc[byte](c, 1<<20)
		check(t, err)
		_, err = dtrain.StartRecv(comm, memory.Data, 0, 0)
		check(t, err)
		go dtrain.Recv(background, comm, make([]byte, 1<<20), 0, 1)
		os.Exit(0)
	}
	command := exec.Command(os.Args[0], "-test.run=^TestEndInFlight$")
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "DTRAIN_R") && !strings.HasPrefix(variable, "DTRAIN_S") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, "END_IN_FLIGHT=1")
	out, err := command.CombinedOutput()
	if err != nil || len(out) != 0 {
		t.Fatalf("%v\n%s", err, out)
	}
}

package dtrain

// SPDX-License-Identifier: Apache-2.0

// #cgo pkg-config: dtrain
// #include <dtrain.h>
import "C"

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Context owns the transports and all objects that are made with it. Its methods, and those of
// these objects, may be called by many goroutines at once.
type Context struct {
	handle
	watches  watches
	memories memories
	events   events
	gpus     knownGPUs
	log      uint64 // number of the log sink's callback
	world    struct {
		sync.Mutex
		comm *Comm
	}
}

// Option is a setting for NewContext.
type Option func(*settings) error

type settings struct {
	bag uintptr
	log func(LogLevel, string)
}

// WithOption sets an option of the library: WithOption("op.timeout", 30*time.Second), WithOption("op.timeout",
// "30s"). DescribeOptions lists them; the environment sets them, too (DTRAIN_OP_TIMEOUT).
func WithOption[V ~string | time.Duration](key string, value V) Option {
	text := fmt.Sprint(value)
	if duration, is := any(value).(time.Duration); is {
		text = fmt.Sprintf("%dns", int64(duration))
	}
	return func(s *settings) error {
		if err := first(whole("the option", key), whole("the option's value", text)); err != nil {
			return err
		}
		return errorOf(capi.Options_set(s.bag, key, text))
	}
}

// WithOptionsFile reads options from a file of "key = value" lines.
func WithOptionsFile(path string) Option {
	return func(s *settings) error {
		if err := whole("the path", path); err != nil {
			return err
		}
		return errorOf(capi.Options_load(s.bag, path))
	}
}

// WithLog calls sink for each line of the log, in any goroutine; it must not call dtrain. A panic
// in it is reported on stderr. Without WithLog, lines go to stderr.
func WithLog(sink func(level LogLevel, line string)) Option {
	return func(s *settings) error { s.log = sink; return nil }
}

// NewContext opens the transports.
func NewContext(options ...Option) (*Context, error) {
	var s settings
	if failure := capi.Options_create(unsafe.Pointer(&s.bag)); failure != nil {
		return nil, makeError(failure)
	}
	defer func() { capi.Options_destroy(s.bag) }()
	for _, option := range options {
		if err := option(&s); err != nil {
			return nil, err
		}
	}
	c := new(Context)
	c.of(&object{what: "context", tree: new(sync.Mutex)})
	c.watches.words = map[<-chan struct{}]*capi.Word{}
	c.watches.ended = make(chan struct{})
	if failure := capi.Context_create(C.DTRAIN_API_VERSION, s.bag,
		unsafe.Pointer(&c.object.handle)); failure != nil {
		return nil, makeError(failure)
	}
	c.object.destroy = c.destroy
	if s.log != nil {
		c.log = capi.NewCallback(capi.LogSink(func(level int32, line string) {
			s.log(LogLevel(level), line)
		}))
		if failure := capi.Context_set_log(c.object.handle, c.log); failure != nil {
			c.Close()
			return nil, makeError(failure)
		}
	}
	return c, nil
}

// Close closes all objects that were made with the context, then the context. Operations in flight
// end with ErrCanceled; slices of its memory must not be used any more. ErrBusy while a goroutine
// is in a call of one of them. Closing again is no error.
func (c *Context) Close() error { return c.close() }

func (c *Context) destroy(handle uintptr) *capi.Failure {
	if failure := c.events.close(); failure != nil {
		return failure
	}
	if failure := capi.Context_destroy(handle); failure != nil {
		return failure
	}
	close(c.watches.ended)
	capi.DropCallback(c.log)
	return nil
}

// Progress does some work and returns how much; needed with the option progress=manual.
func (c *Context) Progress() (int, error) {
	handle, err := c.enter()
	if err != nil {
		return 0, err
	}
	defer c.object.leave()
	done := capi.Context_progress(handle)
	if done < 0 {
		return 0, errorf(Status(done), "progress: %v", Status(done))
	}
	return int(done), nil
}

// Describe returns what this build and machine can do: transports, kernels, limits.
func (c *Context) Describe() (map[string]any, error) {
	handle, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer c.object.leave()
	text := longText(func(buffer unsafe.Pointer, length int64) int64 {
		return capi.Context_describe(handle, buffer, length)
	})
	return described(text)
}

func described(text string) (map[string]any, error) {
	var description map[string]any
	if err := json.Unmarshal([]byte(text), &description); err != nil {
		return nil, errorf(ErrInternal, "describe: the description is not valid JSON: %v", err)
	}
	return description, nil
}

// longText reads a text of any length that C copies.
func longText(read func(buffer unsafe.Pointer, length int64) int64) string {
	buffer := make([]byte, 4096)
	for {
		length := read(start(buffer), int64(len(buffer)))
		if length < int64(len(buffer)) {
			return string(buffer[:length])
		}
		buffer = make([]byte, length+256)
	}
}

// Version is the version of the library.
func Version() string { return capi.Version_string() }

// OptionText describes an option of the library.
type OptionText struct{ Key, Default, Text string }

// DescribeOptions lists all options.
func DescribeOptions() []OptionText {
	var all []OptionText
	for {
		var key, value, text uintptr
		if failure := capi.Options_describe(uint32(len(all)), unsafe.Pointer(&key),
			unsafe.Pointer(&value), unsafe.Pointer(&text)); failure != nil {
			return all
		}
		all = append(all, OptionText{capi.Text(key), capi.Text(value), capi.Text(text)})
	}
}

// OptionValue returns an option's value: from the environment, the file that it names, or the
// default.
func OptionValue(key string) (string, error) {
	if err := whole("the option", key); err != nil {
		return "", err
	}
	var bag uintptr
	if failure := capi.Options_create(unsafe.Pointer(&bag)); failure != nil {
		return "", makeError(failure)
	}
	defer func() { capi.Options_destroy(bag) }()
	value := make([]byte, 1<<16) // longer than any command line
	if failure := capi.Options_get(bag, key, start(value), int64(len(value))); failure != nil {
		return "", makeError(failure)
	}
	return string(value[:bytes.IndexByte(value, 0)]), nil
}

// DeviceStats counts bytes of the program's memory that a transport has copied, or the network has
// used in place, and registrations of it with their cache.
type DeviceStats struct {
	Copied, InPlace                        uint64
	Registrations, RegisteredBytes         uint64 // now
	CacheEntries, CacheBytes               uint64 // registrations that the transport keeps, now
	CacheHits, CacheMisses, CacheEvictions uint64
}

// DeviceStats returns how the index-th transport of Describe has handled the program's memory.
func (c *Context) DeviceStats(index int) (DeviceStats, error) {
	s := capi.NewDevice_stats()
	defer capi.DeleteDevice_stats(s)
	err := c.call(func(handle uintptr) *capi.Failure {
		return capi.Stats_device(handle, uint32(clamp(index)), s.Swigcptr())
	})
	return DeviceStats{
		Copied: s.GetCopied(), InPlace: s.GetIn_place(),
		Registrations: s.GetRegistrations(), RegisteredBytes: s.GetRegistered_bytes(),
		CacheEntries: s.GetCache_entries(), CacheBytes: s.GetCache_bytes(),
		CacheHits: s.GetCache_hits(), CacheMisses: s.GetCache_misses(),
		CacheEvictions: s.GetCache_evictions(),
	}, err
}

// StartTimeline writes a timeline of this rank to a file, for ui.perfetto.dev; %r in path is the
// rank.
func (c *Context) StartTimeline(path string) error {
	if err := whole("the path", path); err != nil {
		return err
	}
	return c.call(func(handle uintptr) *capi.Failure { return capi.Timeline_start(handle, path) })
}

// MarkTimeline marks this moment in the timeline under the given name.
func (c *Context) MarkTimeline(name string) error {
	if err := whole("the name", name); err != nil {
		return err
	}
	return c.call(func(handle uintptr) *capi.Failure { return capi.Timeline_mark(handle, name) })
}

// StopTimeline ends the timeline and closes its file.
func (c *Context) StopTimeline() error { return c.call(capi.Timeline_stop) }

func (o *object) call(function func(uintptr) *capi.Failure) error {
	handle, err := o.enter()
	if err != nil {
		return err
	}
	defer o.leave()
	return errorOf(function(handle))
}

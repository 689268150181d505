package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"fmt"
	"runtime/debug"

	"dtrain.org/dtrain/internal/capi"
)

// PanicError is a panic in a function that dtrain called. errors.Is and errors.As find its value if that is
// an error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is what was panicked with, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// callback is a function of the program's that C calls during one call, and what it failed with first. The
// zero value is none.
type callback struct {
	what   string
	number uint64
	err    error
}

// run tells whether it went well; no panic gets to C's frames, which it cannot unwind.
func (c *callback) run(body func() error) (well bool) {
	defer func() {
		if reason := recover(); reason != nil {
			c.fail(&PanicError{reason, debug.Stack()})
			well = false
		}
	}()
	err := body()
	c.fail(err)
	return err == nil
}

func (c *callback) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *callback) drop() { capi.DropCallback(c.number) }

// explain makes what the callback failed with the cause of the call's error.
func (c *callback) explain(failure *capi.Failure) error {
	if failure == nil {
		return nil
	}
	err := makeError(failure)
	if c.err != nil {
		err.cause = c.err
		err.Text += fmt.Sprintf(" (%s: %v)", c.what, c.err)
	}
	return err
}

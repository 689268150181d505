package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"fmt"
	"runtime/debug"

	"dtrain.org/dtrain/internal/capi"
)

// PanicError is a panic in a function that dtrain called. If the panic's value is an error,
// errors.Is and errors.As find it.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// callback is a function of the program that C calls during one call, with its first error. The
// zero value is no function.
type callback struct {
	what   string
	number uint64
	err    error
}

// run reports whether body succeeded. It recovers panics, since they cannot unwind C's frames.
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

// explain returns the call's error, with the callback's error as its cause.
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

// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Duration is a duration with a text form in JSON: "1.5s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// Object is an object's key with a text form in JSON: "namespace/name", or "name".
type Object struct{ abi.Key }

// MarshalText implements encoding.TextMarshaler.
func (o Object) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Object) UnmarshalText(text []byte) error {
	namespace, name, ok := strings.Cut(string(text), "/")
	if !ok {
		namespace, name = "", namespace
	}
	o.Key = abi.Key{Namespace: namespace, Name: name}
	return nil
}

func (o *Object) bytes() int { return len(o.Namespace) + len(o.Name) }

// Next is an action with a text form in JSON: "await change", or "requeue after 2s".
type Next struct{ abi.Action }

const requeueAfter = "requeue after "

// String returns the action without excess digits.
func (n Next) String() string {
	if n.After > time.Second {
		n.After = n.After.Round(10 * time.Millisecond)
	} else if n.After > time.Millisecond {
		n.After = n.After.Round(time.Millisecond)
	}
	return n.Action.String()
}

// MarshalText implements encoding.TextMarshaler.
func (n Next) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Next) UnmarshalText(text []byte) (err error) {
	*n = Next{}
	after, requeue := strings.CutPrefix(string(text), requeueAfter)
	switch {
	case requeue:
		n.Requeue = true
		n.After, err = time.ParseDuration(after)
	case string(text) != n.Action.String():
		err = fmt.Errorf("%q: want %q, or %q and a time", text, n.Action, requeueAfter)
	}
	return err
}

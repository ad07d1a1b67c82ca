// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"

	"github.com/wasmctl/wasmctl/host/internal/shell"
)

// Form returns the bytes that guest processes compile, or load together with compiled code.
func (c *Code) Form() []byte { return c.form }

// Stored reports whether the form was compiled beforehand, for Take.
func (c *Code) Stored() bool { return c.stored != nil }

// Take calls a function with a new directory below in, which has the compiled form if the
// cache still has it. The error matches ErrCacheDir if the directory cannot be made.
func (c *Code) Take(in string, use func(dir string) error) error {
	return inPrivate(in, func(dir string) error {
		if _, err := c.stored.compiler.store().Take(c.stored.id, dir, nil); err != nil {
			c.stored.compiler.untaken(err)
		}
		return use(dir)
	})
}

// Loading is the form of a module that a guest process loads.
type Loading struct {
	Form      []byte
	Dir       string // with compiled code; may be empty
	Workers   int    // that compile, if the code is not in Dir
	MaxStack  int64
	StartSize int64
	Link      Linker
}

// Load loads the form, from Dir if the code is there.
func (l *Loading) Load(ctx context.Context) (*Code, error) {
	m, err := parseForm(l.Form)
	if err != nil {
		return nil, err
	}
	code := &Code{Files: m.files, MaxStack: l.MaxStack, Globals: -1, StartSize: l.StartSize}
	if code.machine = l.fromDir(ctx); code.machine == nil {
		if code.machine, err = compileHere(ctx, l.Form, l.Workers); err != nil {
			return nil, err
		}
	}
	if err := code.machine.link(ctx, m.imports, l.Link); err != nil {
		_ = code.Close(ctx) // the code is of no use
		return nil, err
	}
	return code, nil
}

// fromDir returns the code from the directory, or nil if it is not there.
func (l *Loading) fromDir(ctx context.Context) *machine {
	if l.Dir == "" {
		return nil
	}
	outer, err := shell.Of(l.Form)
	if err != nil {
		return nil
	}
	m, err := fromCache(ctx, l.Dir, outer)
	if err != nil {
		return nil
	}
	return m
}

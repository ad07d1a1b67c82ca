// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"context"
	"errors"

	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/operation"
)

// maker makes instances in guest processes. It implements instance.Maker.
type maker struct {
	spec *instance.Spec
	code *Code
}

// Maker returns a maker of instances of the code.
func (c *Code) Maker(spec *instance.Spec) instance.Maker { return &maker{spec, c} }

// Open implements instance.Maker.
func (m *maker) Open(ctx context.Context) (*instance.Instance, error) {
	return instance.Open(ctx, m.spec, func(c *instance.Core) (instance.Guest, *operation.Desk) {
		r := &remote{core: c, spec: m.spec, code: m.code, size: m.code.StartSize}
		r.desk = operation.NewDesk(m.spec.Env, &c.Run, r)
		return r, r.desk
	})
}

// New implements instance.Maker.
func (m *maker) New(ctx context.Context, s *operation.Settings, _ bool) (*instance.Instance, error) {
	in, err := m.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := in.Configure(ctx, s); err != nil {
		in.Close(ctx)
		return nil, err
	}
	return in, nil
}

// HasImage implements instance.Maker.
func (m *maker) HasImage() bool { return false }

// NoImage implements instance.Maker.
func (m *maker) NoImage() error { return errors.New("the module has a process of its own") }

// ReleaseImage implements instance.Maker.
func (m *maker) ReleaseImage() {}

// Close implements instance.Maker.
func (m *maker) Close() {}

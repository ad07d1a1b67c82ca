// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
)

// Maker makes the instances of a revision. All methods are safe for concurrent use.
type Maker interface {
	// Open makes an instance whose start code has run.
	Open(ctx context.Context) (*Instance, error)
	// New makes an instance that is ready for any entry. current reports that the settings
	// are those of the revision, and not ones that are tested.
	New(ctx context.Context, s *operation.Settings, current bool) (*Instance, error)
	// HasImage reports whether instances start from an image.
	HasImage() bool
	// NoImage returns the reason why each instance runs the start code of the module. It is
	// nil if instances start from an image, or were too few to need one.
	NoImage() error
	// ReleaseImage releases the memory of the image.
	ReleaseImage()
	// Close returns everything that the maker has.
	Close()
}

// LocalMaker makes instances in this process.
type LocalMaker struct {
	spec   *Spec
	images images
	common *common // what instances start from in place of images; nil for most modules
}

// NewLocalMaker returns a maker for a revision. shared may be nil.
func NewLocalMaker(spec *Spec, shared *Shared) *LocalMaker {
	return &LocalMaker{spec: spec, common: shared.join(spec)}
}

// Open implements Maker.
func (m *LocalMaker) Open(ctx context.Context) (*Instance, error) {
	return Open(ctx, m.spec, func(c *Core) (Guest, *operation.Desk) { return newLocal(c, m.spec) })
}

// New implements Maker.
func (m *LocalMaker) New(ctx context.Context, s *operation.Settings, current bool) (*Instance, error) {
	common := m.common.image(ctx, m)
	if common == nil && current && m.spec.Code.Globals >= 0 {
		if in, err := m.start(ctx, s); in != nil || err != nil {
			return in, err
		}
	}
	in, err := m.begin(ctx, common)
	if err != nil {
		return nil, err
	}
	if err := in.Configure(ctx, s); err != nil {
		in.Close(ctx)
		return nil, err
	}
	return in, nil
}

// begin makes an instance from an image or, without an image that is of use, by its start
// code.
func (m *LocalMaker) begin(ctx context.Context, img *image) (*Instance, error) {
	if img != nil {
		in, useless, err := img.open(ctx, m.spec)
		if in != nil || err != nil {
			return in, err
		}
		m.noImage(useless)
	}
	return m.Open(ctx)
}

// HasImage implements Maker.
func (m *LocalMaker) HasImage() bool {
	return m.images.has() || m.SharesImage()
}

// SharesImage reports whether the controllers of the module start from one image.
func (m *LocalMaker) SharesImage() bool { return m.common != nil && m.common.made.Load() != nil }

// errImageless is the usual reason why a module cannot start from an image.
var errImageless = fmt.Errorf("it does not export %s, has a start function, or changes a table or a segment", abi.ExportInitialize)

// NoImage implements Maker.
func (m *LocalMaker) NoImage() error {
	if m.spec.Code.Globals < 0 {
		return errImageless
	}
	return m.images.why()
}

// ReleaseImage implements Maker.
func (m *LocalMaker) ReleaseImage() { m.images.release() }

// Close implements Maker.
func (m *LocalMaker) Close() {
	m.images.release()
	m.common.leave()
}

// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
)

// Shared has the images that the controllers of a module share. The zero Shared is ready for
// use, by any number of goroutines.
type Shared struct {
	commons share.Table[sharedBy, *common]
}

// sharedBy is the key of an image. The controllers of different tenants never share one: what
// start code has computed in one instance, such as numbers of a random generator, is in all
// instances of the image.
type sharedBy struct{ digest, tenant string }

// Len returns the number of modules that share images.
func (s *Shared) Len() int { return s.commons.Len() }

// common is the state that the controllers of a module have in common: start code and
// prepare_controllers have run, and no controller was chosen. All instances of all of them
// start from it, the first ones too.
type common struct {
	of    *Shared
	by    sharedBy
	turn  chan struct{} // a one-token semaphore: its holder may make the image
	made  atomic.Pointer[image]
	never atomic.Bool // no image can be made
}

// join returns the state that a revision shares with those of other controllers of the same
// module and tenant, or nil if there is none. A nil Shared shares nothing.
func (s *Shared) join(spec *Spec) *common {
	code := spec.Code
	if s == nil || !code.Several || !code.Hooks[abi.ExportPrepare] || code.Globals < 0 {
		return nil
	}
	by := sharedBy{code.Info.Digest, spec.Tenant}
	return s.commons.Enter(by, &common{of: s, by: by, turn: make(chan struct{}, 1)})
}

// leave closes the image after its last user.
func (c *common) leave() {
	if c == nil || !c.of.commons.Leave(c.by) {
		return
	}
	if img := c.made.Load(); img != nil {
		img.close()
	}
}

// image returns the image, which m makes if it is the first to ask. It returns nil if there
// is none.
func (c *common) image(ctx context.Context, m *LocalMaker) *image {
	if c == nil || c.never.Load() {
		return nil
	}
	if img := c.made.Load(); img != nil {
		return img
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil
	}
	if img := c.made.Load(); img != nil || c.never.Load() {
		return img
	}
	img, err := m.makeCommon(ctx)
	if err != nil && ctx.Err() == nil {
		c.never.Store(true)
		m.noImage(err)
	}
	c.made.Store(img)
	return img
}

// makeCommon makes the image of an instance that has no other use. Without an error, there
// may be no image: the next instance shows why.
func (m *LocalMaker) makeCommon(ctx context.Context) (*image, error) {
	in, err := m.openGiven(ctx)
	if err != nil {
		return nil, nil //nolint:nilnil // documented
	}
	defer in.Close(ctx)
	e := m.spec.Entry(abi.ExportPrepare)
	if err := in.guarded(ctx, e, func() error {
		_, err := in.guest.Call(e, Message{})
		return err
	}); err != nil {
		return nil, err
	}
	return newImage(in, nil)
}

// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/layout"
	"github.com/wasmctl/wasmctl/host/operation"
)

// images has the image of a revision. The second instance becomes the image: a module that
// needs only one instance at a time has no use for it.
type images struct {
	mu    sync.Mutex
	made  *image              // guarded by mu
	of    *operation.Settings // of the instances that are counted; guarded by mu
	count int                 // instances that ran their start code; -1 if no image can be made; guarded by mu
	none  error               // why each instance runs the start code, if that is known; guarded by mu
}

// take returns the image of instances with some settings, or nil, and whether one is to be
// made.
func (im *images) take(s *operation.Settings) (img *image, due bool) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.of != s {
		im.forget()
		im.of, im.count = s, 0
	}
	if im.made != nil {
		im.made.users++
		return im.made, false
	}
	if im.count < 0 {
		return nil, false
	}
	im.count++
	due = im.count == 2
	return nil, due
}

// put stores an image that was made. If there is none, it records whether one can be made.
func (im *images) put(s *operation.Settings, img *image, never bool) {
	im.mu.Lock()
	defer im.mu.Unlock()
	switch {
	case im.of != s || im.made != nil:
		if img != nil {
			im.leave(img)
		}
	case img != nil:
		im.made, im.none = img, nil
	case never:
		im.count = -1
	default:
		im.count = 1 // the next instance tries
	}
}

// giveBack ends a use of an image.
func (im *images) giveBack(img *image) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.leave(img)
}

// has reports whether there is an image.
func (im *images) has() bool {
	im.mu.Lock()
	defer im.mu.Unlock()
	return im.made != nil
}

// release releases the memory of the image. The next instances are counted from the first.
func (im *images) release() {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.forget()
	im.count = min(im.count, 0)
}

// forget ends the use of the image by images; mu is held.
func (im *images) forget() {
	if im.made != nil {
		im.leave(im.made)
		im.made = nil
	}
}

// leave ends a use of an image; mu is held.
func (*images) leave(img *image) {
	if img.users--; img.users == 0 {
		img.close()
	}
}

// why returns the reason why each instance runs the start code, or nil.
func (im *images) why() error {
	im.mu.Lock()
	defer im.mu.Unlock()
	return im.none
}

// start returns a new instance from the image, or one that has just become the image. It
// returns nil, without an error, if the instance must be made in the ordinary way.
func (m *LocalMaker) start(ctx context.Context, s *operation.Settings) (*Instance, error) {
	img, due := m.images.take(s)
	if img != nil {
		defer m.images.giveBack(img)
		in, useless, err := img.open(ctx, m.spec)
		if useless != nil {
			m.noImage(useless)
		}
		return in, err
	}
	if !due {
		return nil, nil //nolint:nilnil // documented
	}
	in, img, err := m.makeImage(ctx, s)
	m.images.put(s, img, img == nil && err == nil)
	return in, err
}

// makeImage runs start code, describe and configure, and makes an image of the instance,
// which remains as good as any other. Without an error, there may be no image. There is no
// instance either if describe has failed, which the host does not always call.
func (m *LocalMaker) makeImage(ctx context.Context, s *operation.Settings) (*Instance, *image, error) {
	in, err := m.openGiven(ctx)
	if err != nil {
		return nil, nil, err
	}
	if m.spec.Code.Hooks[abi.ExportDescribe] { // the host knows the result, but the first call sets up much
		if _, _, err := in.Describe(ctx); err != nil {
			in.Close(ctx)
			m.noImage(err)
			return nil, nil, ctx.Err()
		}
	}
	if err := in.Configure(ctx, s); err != nil {
		in.Close(ctx)
		return nil, nil, err
	}
	img, err := newImage(in, s)
	in.guest.(*Local).given = nil
	m.spec.Code.Rest()
	if err != nil {
		m.noImage(err)
	}
	return in, img, nil
}

// openGiven makes an instance, and records what its start code receives.
func (m *LocalMaker) openGiven(ctx context.Context) (*Instance, error) {
	return Open(ctx, m.spec, func(c *Core) (Guest, *operation.Desk) {
		l, desk := newLocal(c, m.spec)
		l.given = &layout.Given{}
		return l, desk
	})
}

func (m *LocalMaker) noImage(reason error) {
	m.images.mu.Lock()
	m.images.none = reason
	m.images.mu.Unlock()
	m.spec.Log.Debug("each instance runs the start code of the module: there is no image of it", "reason", reason)
}

// WithoutImage has instances with these settings run the start code: tests and benchmarks
// compare with them.
func (m *LocalMaker) WithoutImage(s *operation.Settings) {
	m.images.release()
	m.images.mu.Lock()
	defer m.images.mu.Unlock()
	m.images.of, m.images.count = s, -1
}

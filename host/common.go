package host

import (
	"context"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/layout"
)

// common is what the controllers of a module have in common: start code and
// prepare_controllers have run, and no controller was chosen. All instances of all of them
// start from it, the first ones too.
type common struct {
	of     *Codes
	digest string
	turn   chan struct{} // who has put something in may make the image
	made   atomic.Pointer[image]
	never  atomic.Bool // no image can be made
}

// joinCommon returns what a revision shares with those of other controllers of the same
// module; nil where that is nothing. A nil Codes shares nothing.
func (s *Codes) joinCommon(code *code) *common {
	if s == nil || code.remote != nil || !code.several || !code.hooks[abi.ExportPrepare] || code.globals < 0 {
		return nil
	}
	digest := code.info.Digest
	return s.commons.enter(digest, &common{of: s, digest: digest, turn: make(chan struct{}, 1)})
}

// leave drops the image after its last user.
func (c *common) leave() {
	if c == nil || !c.of.commons.leave(c.digest) {
		return
	}
	if img := c.made.Load(); img != nil {
		img.close()
	}
}

// image returns the image, which g makes where it is the first that asks. It is nil where
// there is none.
func (c *common) image(ctx context.Context, g *revision) *image {
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
	img, err := g.makeCommon(ctx)
	if err != nil && ctx.Err() == nil {
		c.never.Store(true)
		g.noImage(err)
	}
	c.made.Store(img)
	return img
}

// makeCommon makes the image of an instance that is of no other use. Without an error,
// there may be no image: who makes an instance now says why.
func (g *revision) makeCommon(ctx context.Context) (*image, error) {
	in, err := g.run(ctx, &instance{gen: g, given: &layout.Given{}})
	if err != nil {
		return nil, nil //nolint:nilnil // documented
	}
	defer in.close(ctx)
	if err := in.prepareAll(ctx); err != nil {
		return nil, err
	}
	return in.image(nil)
}

// prepareAll calls the guest's prepare_controllers.
func (in *instance) prepareAll(ctx context.Context) error {
	return in.guarded(ctx, entry{name: abi.ExportPrepare, limit: in.gen.limits.Timeout}, func() error {
		in.fuelBudget.enterFrame()
		return in.function(abi.ExportPrepare).CallWithStack(&in.interrupt, in.stack[:])
	})
}

// begin makes an instance of an image, or without one that is of use an instance whose
// start code has run.
func (g *revision) begin(ctx context.Context, img *image) (*instance, error) {
	if img != nil {
		if in, err := g.fromImage(ctx, img); in != nil || err != nil {
			return in, err
		}
	}
	return g.instantiate(ctx)
}

// hasImage reports whether instances can be made of an image.
func (g *revision) hasImage() bool {
	return g.images.has() || g.common != nil && g.common.made.Load() != nil
}

package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/layout"
	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
	"github.com/wasmctl/wasmctl/host/meter"
)

// image is an instance at rest: its start code has run, and describe and configure,
// but no object was seen. Instances that are made of it run none of that again. They
// share its memory until they write to it.
type image struct {
	settings    *settings
	memory      *linear.Image
	globals     []uint64
	descriptors wasi.Descriptors
	entered     int64
	// places are the states of random generators: each instance gets others.
	places []layout.Place
	// budget has its memory, and counted where it is one module's; else nil.
	budget  *Budget
	counted *atomic.Int64
	users   int // guarded by images.mu; 1 for being kept
}

// images has the image of a revision. The second instance is made into one: a module
// that needs no more than one at a time has no use for it.
type images struct {
	mu    sync.Mutex
	made  *image    // guarded by mu
	of    *settings // that instances are counted with; guarded by mu
	count int       // instances that ran their start code; -1 where no image can be made; guarded by mu
	none  error     // why each instance runs the start code, as far as it is known; guarded by mu
}

// start returns a new instance from the image, or one that has just become the image.
// It is nil, without an error, where one has to be made in the ordinary way.
func (im *images) start(ctx context.Context, g *revision, s *settings) (*instance, error) {
	if g.code.globals < 0 || g.code.remote != nil || s != g.settings.Load() {
		return nil, nil //nolint:nilnil // documented
	}
	img, due := im.take(s)
	if img != nil {
		defer im.give(img)
		return g.fromImage(ctx, img)
	}
	if !due {
		return nil, nil //nolint:nilnil // documented
	}
	in, img, err := g.makeImage(ctx, s)
	im.keep(s, img, img == nil && err == nil)
	return in, err
}

// take returns the image of instances with some settings, or nil, and whether one is
// to be made.
func (im *images) take(s *settings) (img *image, due bool) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.of != s {
		im.drops()
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

// keep keeps an image that was made; without one it notes whether none can be.
func (im *images) keep(s *settings, img *image, never bool) {
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
		im.count = 1 // the next one tries
	}
}

func (im *images) give(img *image) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.leave(img)
}

// has reports whether instances can be made of an image.
func (im *images) has() bool {
	im.mu.Lock()
	defer im.mu.Unlock()
	return im.made != nil
}

// drop gives the memory of the image back. The next instances are counted from the first.
func (im *images) drop() {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.drops()
	im.count = min(im.count, 0)
}

// drops is drop with the lock.
func (im *images) drops() {
	if im.made != nil {
		im.leave(im.made)
		im.made = nil
	}
}

// leave ends a use of an image. The lock is held.
func (*images) leave(img *image) {
	if img.users--; img.users == 0 {
		img.close()
	}
}

func (img *image) close() {
	size := img.memory.Resident()
	img.budget.give(size)
	if img.counted != nil {
		img.counted.Add(-size)
	}
	img.memory.Close()
}

// makeImage runs start code, describe and configure, and makes an image of the
// instance, which is as good as any other. Without an error, there may be no image, and
// no instance either, which says that describe has failed where nobody else asks it.
func (g *revision) makeImage(ctx context.Context, s *settings) (*instance, *image, error) {
	in, err := g.run(ctx, &instance{gen: g, given: &layout.Given{}})
	if err != nil {
		return nil, nil, err
	}
	if g.code.hooks[abi.ExportDescribe] { // it only says what the host knows; but the first call sets up much
		if _, _, err := in.describe(ctx); err != nil {
			in.close(ctx)
			g.noImage(err)
			return nil, nil, ctx.Err()
		}
	}
	if err := in.configure(ctx, s); err != nil {
		in.close(ctx)
		return nil, nil, err
	}
	img, err := in.image(s)
	in.given = nil
	g.code.rest()
	if err != nil {
		g.noImage(err)
	}
	return in, img, nil
}

func (g *revision) noImage(why error) {
	g.images.mu.Lock()
	g.images.none = why
	g.images.mu.Unlock()
	g.log.Debug("each instance runs the start code of the module: there is no image of it", "reason", why)
}

// NoImage returns why each instance of the live revision runs the start code of the
// module, and nil where instances start from an image, or were too few to need one.
func (m *Module) NoImage() error {
	g := m.last.Load()
	switch {
	case g.code.remote != nil:
		return errors.New("the module has a process of its own")
	case g.code.globals < 0:
		return errImageless
	}
	g.images.mu.Lock()
	defer g.images.mu.Unlock()
	return g.images.none
}

// errImageless is why most modules have no image that have none.
var errImageless = fmt.Errorf("it does not export %s, has a start function, or changes a table or a segment", abi.ExportInitialize)

// image makes an image of an instance that rests. Settings are nil where none were given.
func (in *instance) image(s *settings) (*image, error) {
	memory, ok := in.memory.Read(0, in.memory.Size())
	if !ok {
		return nil, errors.New("it has no memory")
	}
	img := &image{settings: s, descriptors: in.descriptors.Clone(), entered: in.entered, budget: in.gen.cfg.Budget, users: 1}
	if s != nil {
		img.counted = &in.gen.shared.memory
	}
	var err error
	if img.places, err = layout.Find(memory, *in.given); err != nil {
		return nil, err
	}
	for i := range in.gen.code.globals {
		img.globals = append(img.globals, in.global(i).Get())
	}
	if img.memory, err = linear.NewImage(memory); err != nil {
		return nil, err
	}
	size := img.memory.Resident()
	if !in.gen.cfg.Budget.tryTake(size) {
		img.memory.Close()
		return nil, fmt.Errorf("memory budget: %s are not free", sizeText(size))
	}
	if img.counted != nil {
		img.counted.Add(size)
	}
	return img, nil
}

// global is one of the guest's own that can change.
func (in *instance) global(i int) vm.Global {
	return in.module.ExportedGlobal(meter.GlobalPrefix + strconv.Itoa(i)).(vm.Global)
}

// atRest instantiates a module without running anything of it.
var atRest = vm.NewConfig()

// fromImage makes an instance that is ready for any entry. It is nil, without an error,
// where the image is of no use.
func (g *revision) fromImage(ctx context.Context, img *image) (*instance, error) {
	in := &instance{gen: g}
	if g.code.base != nil { // or else wazero would write data over it
		in.linear.start = img.memory
	}
	if err := in.prepare(ctx); err != nil {
		in.close(ctx)
		return nil, err
	}
	if err := in.restore(img); err != nil {
		in.close(ctx)
		g.noImage(err)
		return nil, nil //nolint:nilnil // documented
	}
	return in, nil
}

// restore makes the instance what that of the image was.
func (in *instance) restore(img *image) (err error) {
	if in.module, err = in.gen.code.instantiate(in, atRest); err != nil {
		return err
	}
	in.complete()
	size := uint32(img.memory.Size()) //nolint:gosec // of a memory of 32 bits; 4 GiB would be no image's
	if has := in.memory.Size(); has < size {
		if _, ok := in.memory.Grow((size - has) / pageSize); !ok {
			return errors.Join(errors.New("its memory cannot grow"), in.linear.refused)
		}
	}
	if in.linear.start == nil {
		if err := in.linear.mem.Load(img.memory); err != nil {
			return err
		}
	}
	for i, v := range img.globals {
		in.global(i).Set(v)
	}
	in.settings, in.descriptors, in.entered, in.imaged = img.settings, img.descriptors.Clone(), img.entered, true
	for _, p := range img.places {
		state, _ := in.memory.Read(uint32(p.At), uint32(p.Len)) //nolint:gosec // within the image
		if err := in.random(state); err != nil {
			return err
		}
	}
	return nil
}

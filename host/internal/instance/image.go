// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/wasmctl/wasmctl/host/internal/layout"
	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
	"github.com/wasmctl/wasmctl/host/meter"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// image is an instance at rest: its start code, describe and configure have run, but it has
// seen no object. Instances that start from it run none of that again. They share its memory
// until they write to it.
type image struct {
	settings    *operation.Settings // nil if there were none
	memory      *linear.Image
	globals     []uint64
	descriptors wasi.Descriptors
	entered     int64
	// places are the states of random generators: each instance gets others.
	places []layout.Place
	env    *operation.Env // whose account has the memory
	users  int            // guarded by images.mu; images is one of them
}

// newImage makes an image of an instance that rests, with its settings, which may be nil.
func newImage(in *Instance, s *operation.Settings) (*image, error) {
	l := in.guest.(*Local)
	memory, ok := l.memory.Read(0, l.memory.Size())
	if !ok {
		return nil, errors.New("it has no memory")
	}
	img := &image{settings: s, descriptors: l.descriptors.Clone(), entered: in.Entered, env: in.Spec.Env, users: 1}
	var err error
	if img.places, err = layout.Find(memory, l.given); err != nil {
		return nil, err
	}
	for i := range l.code.Globals {
		img.globals = append(img.globals, l.global(i).Get())
	}
	if img.memory, err = linear.NewImage(memory); err != nil {
		return nil, err
	}
	size := img.memory.Resident()
	if !img.env.Memory.TryTake(size) {
		img.memory.Close()
		return nil, fmt.Errorf("memory budget: %s are not free", share.SizeText(size))
	}
	img.count(size)
	return img, nil
}

// count counts the memory as that of the module, unless modules share the image.
func (img *image) count(size int64) {
	if img.settings != nil {
		img.env.Share.Memory.Add(size)
	}
}

func (img *image) close() {
	size := img.memory.Resident()
	img.env.Memory.Give(size)
	img.count(-size)
	img.memory.Close()
}

// open makes an instance from the image. useless is the reason why the image cannot be used;
// then there is no instance, and no other error.
func (img *image) open(ctx context.Context, spec *Spec) (in *Instance, useless, err error) {
	in, err = prepare(ctx, spec, func(c *Core) (Guest, *operation.Desk) {
		l, desk := newLocal(c, spec)
		if l.linear.start != nil { // otherwise wazero would write data over it
			l.linear.start = img.memory
		}
		return l, desk
	})
	if err != nil {
		return nil, nil, err
	}
	if err := in.guest.(*Local).restore(img); err != nil {
		in.Close(ctx)
		return nil, err, nil
	}
	in.Desk.Settings, in.Entered, in.Imaged = img.settings, img.entered, true
	return in, nil, nil
}

// restore makes the guest equal to that of the image.
func (l *Local) restore(img *image) (err error) {
	if l.module, err = l.instantiate(atRest); err != nil {
		return err
	}
	l.complete()
	size := uint32(img.memory.Size()) //nolint:gosec // of a memory of 32 bits; 4 GiB would be no image's
	if has := l.memory.Size(); has < size {
		if _, ok := l.memory.Grow((size - has) / share.PageSize); !ok {
			return errors.Join(errors.New("its memory cannot grow"), l.linear.refused)
		}
	}
	if l.linear.start == nil {
		if err := l.linear.mem.Load(img.memory); err != nil {
			return err
		}
	}
	for i, v := range img.globals {
		l.global(i).Set(v)
	}
	l.descriptors = img.descriptors.Clone()
	for _, p := range img.places {
		state, _ := l.memory.Read(uint32(p.At), uint32(p.Len)) //nolint:gosec // within the image
		if err := (*wasiGuest)(l).Random(state); err != nil {
			return err
		}
	}
	return nil
}

// global returns one of the guest's own globals that can change.
func (l *Local) global(i int) vm.Global {
	return l.module.ExportedGlobal(meter.GlobalPrefix + strconv.Itoa(i)).(vm.Global)
}

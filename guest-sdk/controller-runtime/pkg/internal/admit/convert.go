// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
	"sigs.k8s.io/controller-runtime/pkg/internal/run"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// Conversion returns the conversion of a kind for the SDK.
func Conversion(scheme *runtime.Scheme, by conversion.Converter, gk schema.GroupKind) wasmctl.Conversion {
	c := wasmctl.Conversion{Group: gk.Group, Kind: gk.Kind}
	for _, gv := range scheme.VersionsForGroupKind(gk) {
		c.Versions = append(c.Versions, gv.Version)
	}
	slices.Sort(c.Versions)
	fresh := func(apiVersion string) (runtime.Object, error) {
		obj, err := scheme.New(schema.FromAPIVersionAndKind(apiVersion, gk.Kind))
		if err == nil {
			codec.SetKind(obj, apiVersion, gk.Kind)
		}
		return obj, err
	}
	c.Convert = func(c *wasmctl.Context, obj wasmctl.Object, to string) (any, error) {
		src, err := fresh(obj.APIVersion())
		if err != nil {
			return nil, wasmctl.Permanent(err)
		}
		dst, err := fresh(to)
		if err == nil {
			err = codec.Decode(obj, src)
		}
		if err != nil {
			return nil, wasmctl.Permanent(err)
		}
		ctx, leave := run.Enter(context.Background(), c)
		defer leave()
		if err := by.ConvertObject(ctx, src, dst); err != nil {
			return nil, err
		}
		return codec.Plain(dst), nil
	}
	return c
}

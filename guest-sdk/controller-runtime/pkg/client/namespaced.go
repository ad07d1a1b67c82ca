// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
)

// NewNamespacedClient returns a client for the objects of one namespace.
// Objects without a namespace get that namespace; objects of other namespaces
// are refused.
func NewNamespacedClient(c Client, ns string) Client { return &namespaced{c, ns} }

type namespaced struct {
	Client
	ns string
}

// name sets the namespace of an object.
func (n *namespaced) name(obj Object) error {
	scoped, err := n.IsObjectNamespaced(obj)
	switch own := obj.GetNamespace(); {
	case err != nil:
		return err
	case own != "" && own != n.ns:
		return fmt.Errorf("client: %s is in the namespace %q, and the client is for %q", obj.GetName(), own, n.ns)
	case scoped && own == "":
		obj.SetNamespace(n.ns)
	}
	return nil
}

// Get implements Reader.
func (n *namespaced) Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error {
	scoped, err := n.IsObjectNamespaced(obj)
	if err != nil {
		return err
	}
	if scoped {
		if key.Namespace != "" && key.Namespace != n.ns {
			return fmt.Errorf("client: %s is not in the namespace %q of the client", key, n.ns)
		}
		key.Namespace = n.ns
	}
	return n.Client.Get(ctx, key, obj, opts...)
}

// List implements Reader.
func (n *namespaced) List(ctx context.Context, list ObjectList, opts ...ListOption) error {
	if scoped, err := n.IsObjectNamespaced(list); err != nil {
		return err
	} else if scoped && n.ns != "" {
		opts = append(slices.Clip(opts), InNamespace(n.ns))
	}
	return n.Client.List(ctx, list, opts...)
}

// Create implements Writer.
func (n *namespaced) Create(ctx context.Context, obj Object, opts ...CreateOption) error {
	if err := n.name(obj); err != nil {
		return err
	}
	return n.Client.Create(ctx, obj, opts...)
}

// Update implements Writer.
func (n *namespaced) Update(ctx context.Context, obj Object, opts ...UpdateOption) error {
	if err := n.name(obj); err != nil {
		return err
	}
	return n.Client.Update(ctx, obj, opts...)
}

// Patch implements Writer.
func (n *namespaced) Patch(ctx context.Context, obj Object, patch Patch, opts ...PatchOption) error {
	if err := n.name(obj); err != nil {
		return err
	}
	return n.Client.Patch(ctx, obj, patch, opts...)
}

// Delete implements Writer.
func (n *namespaced) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	if err := n.name(obj); err != nil {
		return err
	}
	return n.Client.Delete(ctx, obj, opts...)
}

// DeleteAllOf implements Writer.
func (n *namespaced) DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error {
	if scoped, err := n.IsObjectNamespaced(obj); err != nil {
		return err
	} else if scoped {
		opts = append(slices.Clip(opts), InNamespace(n.ns))
	}
	return n.Client.DeleteAllOf(ctx, obj, opts...)
}

// Apply implements Writer. The apply configuration must name its namespace
// itself.
func (n *namespaced) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...ApplyOption) error {
	if err := n.checkApplied(obj); err != nil {
		return err
	}
	return n.Client.Apply(ctx, obj, opts...)
}

func (n *namespaced) checkApplied(obj runtime.ApplyConfiguration) error {
	ref, err := codec.RefOf(codec.Plain(unwrap(obj)))
	if err != nil {
		return err
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if scoped, err := apiutil.IsGVKNamespaced(gvk, n.RESTMapper()); err != nil || !scoped {
		return err
	}
	if ref.Namespace != n.ns {
		return fmt.Errorf("client: apply %s: it is not in the namespace %q of the client; set it by WithNamespace", ref, n.ns)
	}
	return nil
}

// Status implements Client.
func (n *namespaced) Status() SubResourceWriter { return n.SubResource("status") }

// SubResource implements Client.
func (n *namespaced) SubResource(name string) SubResourceClient {
	return &namespacedSub{n.Client.SubResource(name), n}
}

type namespacedSub struct {
	SubResourceClient
	n *namespaced
}

// Get implements SubResourceReader.
func (s *namespacedSub) Get(ctx context.Context, obj, body Object, opts ...SubResourceGetOption) error {
	if err := s.n.name(obj); err != nil {
		return err
	}
	return s.SubResourceClient.Get(ctx, obj, body, opts...)
}

// Create implements SubResourceWriter.
func (s *namespacedSub) Create(ctx context.Context, obj, body Object, opts ...SubResourceCreateOption) error {
	if err := s.n.name(obj); err != nil {
		return err
	}
	return s.SubResourceClient.Create(ctx, obj, body, opts...)
}

// Update implements SubResourceWriter.
func (s *namespacedSub) Update(ctx context.Context, obj Object, opts ...SubResourceUpdateOption) error {
	if err := s.n.name(obj); err != nil {
		return err
	}
	return s.SubResourceClient.Update(ctx, obj, opts...)
}

// Patch implements SubResourceWriter.
func (s *namespacedSub) Patch(ctx context.Context, obj Object, patch Patch, opts ...SubResourcePatchOption) error {
	if err := s.n.name(obj); err != nil {
		return err
	}
	return s.SubResourceClient.Patch(ctx, obj, patch, opts...)
}

// Apply implements SubResourceWriter.
func (s *namespacedSub) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...SubResourceApplyOption) error {
	if err := s.n.checkApplied(obj); err != nil {
		return err
	}
	return s.SubResourceClient.Apply(ctx, obj, opts...)
}

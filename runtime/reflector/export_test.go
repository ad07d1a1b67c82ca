package reflector

import "slices"

// HasFinalizer reports whether name is one of metadata.finalizers.
func (o *Object) HasFinalizer(name string) bool {
	return slices.Contains(slices.Collect(o.Finalizers()), name)
}

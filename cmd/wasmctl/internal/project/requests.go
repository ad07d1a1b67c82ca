// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// controllerInput is the part of the project file about one controller.
type controllerInput struct {
	Limits v1alpha1.Limits `json:"limits,omitempty"`
}

// requests are what a project requests in addition to the manifests of its program.
type requests struct {
	file File
	// rights are those of the project's roles, unless the program requests them itself.
	rights []abi.Capability
}

// isZero reports whether there are none.
func (r requests) isZero() bool {
	return len(r.rights)+len(r.file.Limits)+len(r.file.Controllers) == 0
}

// addTo adds the requests to the manifests. The limits of the project override those of the program.
func (r requests) addTo(manifests []*abi.Manifest) error {
	unknown := maps.Clone(r.file.Controllers)
	for _, m := range manifests {
		m.Capabilities = append(m.Capabilities, r.rights...)
		setLimits(m, r.file.Limits)
		setLimits(m, r.file.Controllers[m.Name].Limits)
		delete(unknown, m.Name)
	}
	if len(unknown) == 0 {
		return nil
	}
	var names []string
	for _, m := range manifests {
		names = append(names, m.Name)
	}
	return fmt.Errorf("%s: controllers: the module has no controller %s; it has %s",
		FileName, strings.Join(slices.Sorted(maps.Keys(unknown)), ", "), strings.Join(names, ", "))
}

// setLimits sets limits of the project file, which has checked them, in a manifest.
func setLimits(m *abi.Manifest, limits v1alpha1.Limits) {
	values, _ := limits.Parse(nil)
	for name, value := range values {
		if name == string(abi.LimitTimeout) {
			value = max(1, value/int64(time.Millisecond))
		}
		m.Limits = cmp.Or(m.Limits, &abi.Limits{})
		m.Limits.Set(abi.LimitName(name), value)
	}
}

// checkLimits returns an error if a limit is not valid in a manifest.
func (f *File) checkLimits() error {
	path := field.NewPath("limits")
	_, errs := f.Limits.Parse(path)
	all := []v1alpha1.Limits{f.Limits}
	for name, c := range f.Controllers {
		_, more := c.Limits.Parse(field.NewPath("controllers").Key(name).Child("limits"))
		errs, all = append(errs, more...), append(all, c.Limits)
	}
	for _, limits := range all {
		if rate, ok := limits[v1alpha1.LimitFuelRate]; ok {
			errs = append(errs, field.Invalid(path.Child(v1alpha1.LimitFuelRate), rate.String(), "only the host can set it"))
		}
	}
	return errs.ToAggregate()
}

// timeout returns the longest time limit of a run that the project requests, or 0.
func (f *File) timeout() (longest time.Duration) {
	for _, c := range append(slices.Collect(maps.Values(f.Controllers)), controllerInput{f.Limits}) {
		values, _ := c.Limits.Parse(nil)
		longest = max(longest, time.Duration(values[string(abi.LimitTimeout)]))
	}
	return longest
}

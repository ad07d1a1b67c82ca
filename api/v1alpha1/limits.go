// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wasmctl/wasmctl/abi"
)

// Limits are limits of a module by their names.
//
// +kubebuilder:validation:MaxProperties=50
type Limits map[string]intstr.IntOrString

// LimitFuelRate is the limit of the fuel that a module uses per second. Unlike the limits
// of package abi, it cannot be set in a manifest.
const LimitFuelRate = "fuel-rate"

// MinMemory is the size of a WebAssembly page.
const MinMemory = 64 << 10

// LimitNames returns the names that Limits may have.
func LimitNames() []string {
	names := []string{LimitFuelRate}
	for _, name := range abi.LimitNames {
		names = append(names, string(name))
	}
	return names
}

// Parse returns the limits as numbers, with times in nanoseconds, and an error for each
// invalid limit.
func (l Limits) Parse(path *field.Path) (map[string]int64, field.ErrorList) {
	out, errs := map[string]int64{}, field.ErrorList{}
	for _, name := range slices.Sorted(maps.Keys(l)) {
		text := l[name]
		if slices.Contains(abi.FixedLimits, abi.LimitName(name)) {
			errs = append(errs, field.Invalid(path, name, abi.FixedText))
			continue
		}
		if !slices.Contains(LimitNames(), name) {
			errs = append(errs, field.Invalid(path, name, "want one of "+strings.Join(LimitNames(), ", ")))
			continue
		}
		v, want := parseLimit(name, text.String())
		if want != "" {
			errs = append(errs, field.Invalid(path.Child(name), text.String(), want))
		}
		out[name] = v
	}
	return out, errs
}

// parseLimit parses a limit. If it is invalid, want describes valid values; otherwise want
// is empty.
func parseLimit(name, text string) (v int64, want string) {
	if name == string(abi.LimitTimeout) {
		return int64(Duration(text).Or(0)), wrongDuration(text)
	}
	least, most, want := int64(1), abi.LimitName(name).Most(), "want a number of at least 1, such as 500, 10k or 64Ki"
	switch name {
	case string(abi.LimitMemory):
		least, want = MinMemory, "want a size of at least 64Ki and at most 4Gi, such as 64Mi"
	case string(abi.LimitFuel), LimitFuelRate:
		most, want = math.MaxInt64-1, "want a number of units, such as 500M"
	}
	q, err := resource.ParseQuantity(text)
	if err == nil && q.Value() > most && name != string(abi.LimitMemory) {
		want = "want at most " + resource.NewQuantity(most, resource.DecimalSI).String()
	}
	if err != nil || q.Value() < least || q.Value() > most {
		return 0, want
	}
	return q.Value(), ""
}

// ParseSize parses a number of bytes within bounds; an empty text is 0. If it is invalid,
// want describes valid sizes.
func ParseSize(text string, least, most int64) (size int64, want string) {
	if text == "" {
		return 0, ""
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Value() < least {
		return 0, "want a size of at least " + sizeOf(least) + ", such as 64Mi"
	}
	if q.Value() > most {
		return 0, "want a size of at most " + sizeOf(most) + ", such as 64Mi"
	}
	return q.Value(), ""
}

func sizeOf(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// HistoryBytes returns the memory limit of the last runs, in bytes.
func (s *ControllerSpec) HistoryBytes() int {
	size, _ := ParseSize(s.History, 0, math.MaxInt32)
	return int(size)
}

// Bounds are the largest values that a process allows its Reconcilers.
type Bounds struct {
	Limits      map[abi.LimitName]int64 // 0 means unlimited
	Concurrency int32
}

// Check returns an error for each field that exceeds the bounds: a Reconciler can lower the
// limits of the process, but not raise them.
func (b Bounds) Check(s *CommonSpec) (errs field.ErrorList) {
	if n := s.Concurrency; n != nil && *n > b.Concurrency {
		errs = append(errs, field.Invalid(field.NewPath("concurrency"), *n, "is more than this process allows, "+resource.NewQuantity(int64(b.Concurrency), resource.DecimalSI).String()))
	}
	path := field.NewPath("limits")
	limits, _ := s.Limits.Parse(path) // Validate reports its errors
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		most := b.Limits[abi.LimitName(name)]
		if most == 0 || limits[name] <= most {
			continue
		}
		text := sizeOf(most)
		if name == string(abi.LimitTimeout) {
			text = time.Duration(most).String()
		}
		errs = append(errs, field.Invalid(path.Child(name), s.Limits[name], "is more than this process allows, "+text))
	}
	return errs
}

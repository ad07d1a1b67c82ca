// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"
	"time"
)

// Whatever a unit of fuel takes, slices soon take about the time that they
// should, or are as small or as large as they get.
func TestSliceSizer_FindsTheSizeOfASlice(t *testing.T) {
	for _, perUnit := range []float64{0.001, 0.05, 0.1, 0.3, 1, 3, 10, 100} { // nanoseconds
		p := NewSliceSizer(0)
		took := func() time.Duration { return time.Duration(float64(p.size) * perUnit) }
		for range 20 {
			p.Learn(took())
		}
		ok := took() > sliceTime*9/10 && took() < sliceTime*11/10
		if !ok && (took() < sliceTime && p.size != maxSlice || took() > sliceTime && p.size != minSlice) {
			t.Errorf("%v ns a unit: slices of %d take %v", perUnit, p.size, took())
		}
	}
}

// One slice during which the machine did something else does not cost much, and
// a clock that stands still or goes back does no harm.
func TestSliceSizer_NoiseDoesLittle(t *testing.T) {
	p := NewSliceSizer(0)
	for range 20 {
		p.Learn(time.Duration(p.size) / 10)
	}
	before := p.size
	p.Learn(time.Hour)
	if p.size != before/2 {
		t.Errorf("after an hour: %d, before %d", p.size, before)
	}
	for _, took := range []time.Duration{0, -time.Hour} {
		for range 30 {
			p.Learn(took)
		}
		if p.size != maxSlice {
			t.Errorf("slices that take %v: %d units, want %d", took, p.size, maxSlice)
		}
	}
	if p = NewSliceSizer(77); p.size != 77 {
		t.Errorf("fixed: %d", p.size)
	}
	if p.Learn(time.Hour); p.size != 77 {
		t.Errorf("fixed, and learns: %d", p.size)
	}
}

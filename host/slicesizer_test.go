package host

import (
	"testing"
	"time"
)

// Whatever a unit of fuel takes, slices soon take about the time that they
// should, or are as small or as large as they get.
func TestSliceSizer_FindsTheSizeOfASlice(t *testing.T) {
	for _, perUnit := range []float64{0.001, 0.05, 0.1, 0.3, 1, 3, 10, 100} { // nanoseconds
		p := newSliceSizer(0)
		took := func() time.Duration { return time.Duration(float64(p.slice) * perUnit) }
		for range 20 {
			p.learn(took())
		}
		ok := took() > sliceTime*9/10 && took() < sliceTime*11/10
		if !ok && (took() < sliceTime && p.slice != maxSlice || took() > sliceTime && p.slice != minSlice) {
			t.Errorf("%v ns a unit: slices of %d take %v", perUnit, p.slice, took())
		}
	}
}

// One slice during which the machine did something else does not cost much, and
// a clock that stands still or goes back does no harm.
func TestSliceSizer_NoiseDoesLittle(t *testing.T) {
	p := newSliceSizer(0)
	for range 20 {
		p.learn(time.Duration(p.slice) / 10)
	}
	before := p.slice
	p.learn(time.Hour)
	if p.slice != before/2 {
		t.Errorf("after an hour: %d, before %d", p.slice, before)
	}
	for _, took := range []time.Duration{0, -time.Hour} {
		for range 30 {
			p.learn(took)
		}
		if p.slice != maxSlice {
			t.Errorf("slices that take %v: %d units, want %d", took, p.slice, maxSlice)
		}
	}
	if p = newSliceSizer(77); p.slice != 77 {
		t.Errorf("fixed: %d", p.slice)
	}
	if p.learn(time.Hour); p.slice != 77 {
		t.Errorf("fixed, and learns: %d", p.slice)
	}
}

// SPDX-License-Identifier: Apache-2.0

package decay

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A steady input gives its rate; and a Rate is the sum of its inputs, each weighted by its age.
func TestRate_IsTheSumByAge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Now()
	type part struct {
		at time.Time
		n  float64
	}
	var r Rate
	var parts []part
	for range 2000 {
		now = now.Add(time.Duration(random.Int64N(int64(500 * time.Millisecond))))
		p := part{now, float64(random.IntN(1000))}
		parts = append(parts, p)
		r.Add(p.at, p.n)
		want := 0.0
		for _, p := range parts {
			want += p.n / Time.Seconds() * math.Exp(-float64(now.Sub(p.at))/float64(Time))
		}
		if got := r.Read(now); math.Abs(got-want) > 1e-4*want+1e-9 {
			t.Fatalf("rate %v, want %v", got, want)
		}
	}
	r = Rate{}
	for range 6000 {
		now = now.Add(100 * time.Millisecond)
		r.Add(now, 10)
	}
	if got := r.Read(now); math.Abs(got-100) > 1 {
		t.Errorf("ten each 100 ms are %v a second, want 100", got)
	}
	if got := r.Read(now.Add(20 * Time)); got > 1e-6 {
		t.Errorf("after 20 minutes of nothing the rate is %v", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math/rand/v2"
	"testing"
	"time"
)

// sameTime compares parseTime and appendTime with package time.
func sameTime(t *testing.T, text string) {
	t.Helper()
	got, err := parseTime([]byte(text))
	want, wantErr := time.Parse(time.RFC3339, text)
	utc := want.Location() == time.UTC // otherwise the locations differ
	if !got.Equal(want) || got.String() != want.String() || utc && got != want || (err == nil) != (wantErr == nil) {
		t.Errorf("parseTime(%q) is %v, %v, want %v, %v", text, got, err, want, wantErr)
	}
	written, _ := StringBytes(appendTime(nil, want))
	if form := want.UTC().Format(time.RFC3339); string(written) != form {
		t.Errorf("%v is written as %q, want %q", want, written, form)
	}
}

// TestTime_IsThatOfPackageTime parses times of all years, and times with an
// invalid byte.
func TestTime_IsThatOfPackageTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := []byte(time.Unix(r.Int64N(315_569_520_000)-62_167_219_200, 0).UTC().Format(time.RFC3339))
		sameTime(t, string(text))
		text[r.IntN(len(text))] = "0123456789-:TZ+."[r.IntN(16)]
		sameTime(t, string(text))
	}
	for _, at := range []time.Time{{}, time.Unix(1<<40, 0), time.Unix(-1<<40, 0), time.Unix(0, 1).In(time.FixedZone("", 3600))} {
		written, _ := StringBytes(appendTime(nil, at))
		if want := at.UTC().Format(time.RFC3339); string(written) != want {
			t.Errorf("%v is written as %q, want %q", at, written, want)
		}
	}
}

// FuzzTime compares with package time.
func FuzzTime(f *testing.F) {
	f.Add("2026-02-29T03:04:05Z")
	f.Add("2026-01-02T03:04:05.5+01:00")
	f.Fuzz(sameTime)
}

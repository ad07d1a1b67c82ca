package nearest

import "testing"

func TestHint_NamesTheNearestWordOrNone(t *testing.T) {
	words := []string{"owner", "label", "annotation"}
	for got, want := range map[string]string{
		"owners": `; did you mean "owner"?`, "OWNER": `; did you mean "owner"?`, "lable": `; did you mean "label"?`,
		"anotatoin": `; did you mean "annotation"?`, "": "", "xyzzy": "", "something-else": "",
	} {
		if hint := Hint(got, words...); hint != want {
			t.Errorf("%q: %q, want %q", got, hint, want)
		}
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("kitten", "sitting")
	f.Add("", "a")
	f.Fuzz(func(t *testing.T, a, b string) {
		d := distance(a, b, 1000)
		if len(a) > 200 || len(b) > 200 {
			return
		}
		if d != distance(b, a, 1000) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("%q, %q: %d", a, b, d)
		}
	})
}

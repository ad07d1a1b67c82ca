// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

func learned(t testing.TB, object map[string]any) *Values {
	t.Helper()
	b, err := abi.AppendValue(nil, object)
	if err != nil {
		t.Fatal(err)
	}
	var v Values
	v.Learn(b)
	return &v
}

func TestText_HidesEveryFormOfAValue(t *testing.T) {
	const password, pem = `pa"ss wörd+1`, "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nshort\n-----END KEY-----\n"
	v := learned(t, map[string]any{"kind": "SecretList", "apiVersion": "v1", "items": []any{
		map[string]any{"data": map[string]any{"password": b64(password), "tls.key": b64(pem)}},
		map[string]any{"data": map[string]any{".dockerconfigjson": b64(`{"auths":{"r":{"password":"hub-password"}}}`)}},
	}})
	for _, form := range []string{
		password, b64(password), strings.TrimRight(b64(password), "="), base64.URLEncoding.EncodeToString([]byte(password)),
		fmt.Sprintf("%q", password), url.QueryEscape(password), "hub-password",
		"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7", b64(pem), "short",
	} {
		text := v.Text("before " + form + " after")
		if strings.Contains(text, form) || !strings.Contains(text, Mark) || !strings.HasPrefix(text, "before ") || !strings.HasSuffix(text, " after") {
			t.Errorf("%q: %q", form, text)
		}
	}
}

// TestText_HidesWhatOthersWriteOfAValue: the forms in which libraries put a value
// into JSON, URLs and dumps.
func TestText_HidesWhatOthersWriteOfAValue(t *testing.T) {
	for _, value := range []string{`pa"ss wörd+1`, "a/b:c@d?e=f&g<h>#i%j", "tab\there \x01\x7f", "\xff\xfe\x00\x01binary", "emoji 😀 \u2028", "many\nlines <here>", "it's; $(sub)"} {
		v := learned(t, map[string]any{"kind": "Secret", "data": map[string]any{"a": b64(value)}})
		for name, form := range map[string]string{
			"json": string(must(json.Marshal(value))), "json without html": jsonText(value), "json in ascii": strings.Trim(strconv.QuoteToASCII(value), `"`),
			"json in json": string(must(json.Marshal(jsonText(value)))), "json with slashes": strings.ReplaceAll(jsonText(value), "/", `\/`),
			"quoted": strconv.Quote(value), "path": url.PathEscape(value), "query": url.QueryEscape(value), "userinfo": url.UserPassword("me", value).String(),
			"percent": strings.ReplaceAll(url.QueryEscape(value), "+", "%20"), "hex": hex.EncodeToString([]byte(value)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(value))),
			"html": html.EscapeString(value), "raw base64": base64.RawStdEncoding.EncodeToString([]byte(value)), "url": (&url.URL{Scheme: "https", User: url.UserPassword("me", value), Host: "h"}).String(),
		} {
			text := v.Text("before " + form + " after")
			for line := range strings.Lines(value) {
				for _, word := range []string{strings.TrimSpace(line), strings.Trim(form, `"`)} {
					if strings.Contains(text, word) {
						t.Errorf("%s of %q: %q", name, value, text)
					}
				}
			}
			if !strings.Contains(text, Mark) {
				t.Errorf("%s of %q: nothing is hidden: %q", name, value, text)
			}
		}
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func jsonText(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSpace(b.String())
}

func TestText_HidesAPartOfALongValue(t *testing.T) {
	value := randomText(rand.New(rand.NewPCG(1, 2)), 3000)
	v := learned(t, map[string]any{"kind": "Secret", "stringData": map[string]any{"a": value}})
	for from := range 100 {
		part := value[from : from+31]
		if text := v.Text("x " + part + " y"); strings.Contains(text, part) || !strings.HasPrefix(text, "x ") || !strings.HasSuffix(text, " y") {
			t.Fatalf("%d: %q shows %q", from, text, part)
		}
	}
}

func TestText_LeavesOtherTextAlone(t *testing.T) {
	v := learned(t, map[string]any{"kind": "Secret", "data": map[string]any{"a": b64("hunter2-hunter2"), "b": b64("true"), "c": b64("abc")}})
	for _, text := range []string{"", "abc", "it is true", "hunter2", "a line of a log that says nothing of it"} {
		if got := v.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	var none *Values
	none.Learn([]byte("\xa4kind\xa6Secret"))
	none.LearnObject(map[string]any{"kind": "Secret", "data": map[string]any{"a": "aaaaaaaa"}})
	if got := none.Text("aaaaaaaa"); got != "aaaaaaaa" {
		t.Errorf("nil changed it to %q", got)
	}
}

func TestLearnRequest_FindsTheSecretInIt(t *testing.T) {
	b, err := abi.AppendValue(nil, map[string]any{"force": true, "object": map[string]any{"kind": "Secret", "stringData": map[string]any{"a": "hunter2-hunter2"}}})
	if err != nil {
		t.Fatal(err)
	}
	var v Values
	v.LearnRequest(b)
	if got := v.Text("hunter2-hunter2"); got != Mark {
		t.Errorf("got %q", got)
	}
}

// TestLearn_OnlyFromSecrets: a module that may write some object cannot choose
// words that are hidden from then on by writing them so that they look like a
// Secret's.
func TestLearn_OnlyFromSecrets(t *testing.T) {
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"a": "denied a request"}}
	for name, message := range map[string]map[string]any{
		"in a status":        {"apiVersion": "a.b/v1", "kind": "Own", "status": secret},
		"in the object":      {"apiVersion": "a.b/v1", "kind": "Own", "object": secret},
		"in items":           {"apiVersion": "a.b/v1", "kind": "Own", "items": []any{secret}},
		"of another group":   {"apiVersion": "a.b/v1", "kind": "Secret", "stringData": secret["stringData"]},
		"list of that group": {"apiVersion": "a.b/v1", "kind": "SecretList", "items": []any{secret}},
		"request":            {"object": secret},
	} {
		if got := learned(t, message).Text("denied a request"); got == Mark {
			t.Errorf("%s: it is hidden", name)
		}
	}
}

// TestLearn_TheNameOfASecretIsNoValue: also if a value repeats it.
func TestLearn_TheNameOfASecretIsNoValue(t *testing.T) {
	v := learned(t, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "shop-database", "namespace": "production"},
		"data":       map[string]any{"cluster": b64("shop-database\n"), "type": b64("database"), "password": b64("shop-database-1")},
		"stringData": map[string]any{"namespace": "production"},
	})
	for text, want := range map[string]string{
		"secret production/shop-database not found": "secret production/shop-database not found",
		"logs in with shop-database-1":              "logs in with " + Mark,
	} {
		if got := v.Text(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Learning finds the kind for any order of the keys.
func TestLearn_FindsTheKindInAnyOrder(t *testing.T) {
	const data = "\xaastringData\x81\xa1a\xafhunter2-hunter2"
	long := "authentication.k8s.io/" + strings.Repeat("x", 18)
	for name, message := range map[string]string{
		"in order":           "\x83\xaaapiVersion\xa2v1\xa4kind\xa6Secret" + data,
		"kind last":          "\x83\xaaapiVersion\xa2v1" + data + "\xa4kind\xa6Secret",
		"no version":         "\x82\xa4kind\xa6Secret" + data,
		"long version":       "\xde\x00\x03\xaaapiVersion\xd9\x28" + long + "\xa4kind\xa6Secret" + data,
		"list":               "\x83\xaaapiVersion\xa2v1\xa5items\x91\x81" + data + "\xa4kind\xaaSecretList",
		"list with metadata": "\x84\xaaapiVersion\xa2v1\xa5items\x91\x81" + data + "\xa4kind\xaaSecretList\xa8metadata\x81\xa8continue\xa1x",
		"huge map":           "\xdf\x00\x00\x00\x03\xaaapiVersion\xda\x00\x02v1\xa4kind\xa6Secret" + data,
	} {
		var v Values
		v.Learn([]byte(message))
		if got := v.Text("hunter2-hunter2"); got != Mark {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for _, message := range []string{"", "\x80", "\x81", "\x81\xaaapi", "\x82\xaaapiVersion\xa2v1\xa5items", "\xde", "\x82\xaaapiVersion\xa2v1\xa4kind\xa9ConfigMap"} {
		var v Values
		v.Learn([]byte(message))
		if v.young != nil {
			t.Errorf("%q: something was learned", message)
		}
	}
}

// No value that is known is ever found in what Text returns, wherever it stands.
func TestText_NeverShowsAKnownValue(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		values := map[string]any{}
		for i := range 1 + r.IntN(5) {
			values[fmt.Sprint(i)] = randomText(r, MinLength+r.IntN(80))
		}
		v := learned(t, map[string]any{"kind": "Secret", "stringData": values})
		var text strings.Builder
		for range 5 {
			for _, value := range values {
				text.WriteString(randomText(r, r.IntN(6)))
				text.WriteString(value.(string))
			}
		}
		got := v.Text(text.String())
		for _, value := range values {
			if strings.Contains(got, value.(string)) {
				t.Fatalf("%q is shown in %q", value, got)
			}
		}
	}
}

func TestValues_ForgetTheOldestOnly(t *testing.T) {
	v := Values{MaxBytes: 1000}
	value := func(i int) string { return fmt.Sprintf("value-%04d", i) }
	for i := range 1000 {
		v.LearnObject(map[string]any{"kind": "Secret", "stringData": map[string]any{"a": value(i)}})
		if v.Text(value(i)) != Mark {
			t.Fatalf("%d is not known right after it was learned", i)
		}
	}
	if v.Text(value(0)) == Mark {
		t.Error("nothing was forgotten")
	}
	if size := v.young.size + v.old.size; size > 2*1000+100 {
		t.Errorf("%d bytes are kept of at most 1000, twice", size)
	}
	if v.Text(value(980)) != Mark {
		t.Error("a young value was forgotten")
	}
}

func TestValues_Hammer(t *testing.T) {
	v := Values{MaxBytes: 2000}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				value := fmt.Sprintf("value-%d-%d", g, i)
				v.LearnObject(map[string]any{"kind": "Secret", "stringData": map[string]any{"a": value}})
				_ = v.Text("a text with " + value)
			}
		})
	}
	wg.Wait()
	if size := v.young.size + v.old.size; size > 2*2000+100 {
		t.Errorf("%d bytes are kept of at most 2000, twice", size)
	}
	v.LearnObject(map[string]any{"kind": "Secret", "stringData": map[string]any{"a": "the last one"}})
	if got := v.Text("a text with the last one"); got != "a text with "+Mark {
		t.Errorf("afterwards: %q", got)
	}
}

func FuzzText(f *testing.F) {
	f.Add("hunter2", "a hunter2 b")
	f.Add("wörd\xff", "w\xffwörd\xff")
	f.Add("{\"a\":\"bcdefgh\"}", "bcdefgh")
	f.Fuzz(func(t *testing.T, value, text string) {
		var v Values
		v.LearnObject(map[string]any{"kind": "Secret", "stringData": map[string]any{"a": value}})
		got := v.Text(text + value + text)
		line := strings.TrimSpace(value)
		if len(line) < MinLength || strings.Contains(line, "\n") || harmless[line] || strings.Contains(Mark, line) {
			return
		}
		if strings.Contains(strings.ReplaceAll(got, Mark, "\n"), line) {
			t.Errorf("%q is shown in %q", line, got)
		}
	})
}

func FuzzLearn(f *testing.F) {
	f.Add([]byte("\x82\xa4kind\xa6Secret\xa4data\x81\xa1a\xa4YWJj"))
	f.Fuzz(func(_ *testing.T, message []byte) {
		var v Values
		v.Learn(message)
		_ = v.Text(string(message))
	})
}

func BenchmarkText(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	var v Values
	for i := range 200 {
		v.LearnObject(map[string]any{"kind": "Secret", "stringData": map[string]any{fmt.Sprint(i): randomText(r, 20)}})
	}
	line := randomText(r, 120)
	for b.Loop() {
		_ = v.Text(line)
	}
}

func randomText(r *rand.Rand, n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

// TestLearnTexts_HidesTheFormsOfAText: a setting is hidden in the same forms as a value of a Secret.
func TestLearnTexts_HidesTheFormsOfAText(t *testing.T) {
	var v Values
	v.LearnTexts([]string{"pass&word", "abc"})
	for _, form := range []string{"pass&word", b64("pass&word"), `pass\u0026word`, "pass%26word"} {
		if got := v.Text("it is " + form); strings.Contains(got, form) {
			t.Errorf("%q is shown: %q", form, got)
		}
	}
	if got := v.Text("abc"); got != "abc" {
		t.Errorf("a value that is too short to search for is replaced: %q", got)
	}
	(*Values)(nil).LearnTexts([]string{"pass&word"}) // has no effect
}

// SPDX-License-Identifier: Apache-2.0

package program

import (
	"encoding/base64"
	"os"
	"slices"
	"testing"
)

// TestPrepare_GivesMainWhatTheBuildWasTold checks arguments and environment,
// and the settings of webhooks. A build without webhooks tells main so, unless
// the environment overrides that.
func TestPrepare_GivesMainWhatTheBuildWasTold(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	for _, name := range []string{"A", enableWebhooks} {
		t.Setenv(name, "") // restored after the test
	}
	if err := prepare(""); err != nil || len(os.Args) != 1 || os.Getenv(enableWebhooks) != "" || Without(Webhooks) {
		t.Errorf("%v, %q, %q", err, os.Args, os.Getenv(enableWebhooks))
	}
	linked := base64.RawURLEncoding.EncodeToString([]byte(`{"args":["--a=b c","d"],"env":{"A":"it's","ENABLE_WEBHOOKS":"true"},"without":["webhooks"]}`))
	if err := prepare(linked); err != nil || !slices.Equal(os.Args[1:], []string{"--a=b c", "d"}) || os.Getenv("A") != "it's" || os.Getenv(enableWebhooks) != "true" || !Without(Webhooks) || Without(Runnables) {
		t.Errorf("%v, %q, %q", err, os.Args, os.Getenv("A"))
	}
	told.Env = nil
	linked = base64.RawURLEncoding.EncodeToString([]byte(`{"without":["webhooks"],"webhooks":[{"type":"default","path":"/a","rules":[{"resources":["pods"]}]}]}`))
	if err := prepare(linked); err != nil || os.Getenv(enableWebhooks) != "false" {
		t.Errorf("%v, %q", err, os.Getenv(enableWebhooks))
	}
	if len(Hooks) != 1 || Hooks[0].Path != "/a" || Hooks[0].Type != "default" || Hooks[0].Rules[0].Resources[0] != "pods" {
		t.Errorf("webhooks %+v", Hooks)
	}
	if prepare("?") == nil {
		t.Error("what is no base64 is no error")
	}
}

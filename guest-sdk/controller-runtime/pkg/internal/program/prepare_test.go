// SPDX-License-Identifier: Apache-2.0

package program

import (
	"encoding/base64"
	"os"
	"slices"
	"testing"
)

// TestPrepare_GivesMainWhatTheBuildWasTold checks arguments and environment.
// Webhooks are disabled unless the environment enables them.
func TestPrepare_GivesMainWhatTheBuildWasTold(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	for _, name := range []string{"A", enableWebhooks} {
		t.Setenv(name, "") // restored after the test
	}
	if err := prepare(""); err != nil || len(os.Args) != 1 || os.Getenv(enableWebhooks) != "false" || Without(Webhooks) {
		t.Errorf("%v, %q, %q", err, os.Args, os.Getenv(enableWebhooks))
	}
	linked := base64.RawURLEncoding.EncodeToString([]byte(`{"args":["--a=b c","d"],"env":{"A":"it's","ENABLE_WEBHOOKS":"true"},"without":["webhooks"]}`))
	if err := prepare(linked); err != nil || !slices.Equal(os.Args[1:], []string{"--a=b c", "d"}) || os.Getenv("A") != "it's" || os.Getenv(enableWebhooks) != "true" || !Without(Webhooks) || Without(Runnables) {
		t.Errorf("%v, %q, %q", err, os.Args, os.Getenv("A"))
	}
	if prepare("?") == nil {
		t.Error("what is no base64 is no error")
	}
}

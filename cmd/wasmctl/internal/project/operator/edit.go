package operator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// edit replaces a text in a file of a library. One that a version of the library does
// not have is left out.
type edit struct{ file, old, new string }

// body is an edit that gives a function another body.
func body(file, function, text string) edit {
	return edit{file, function + "\n", function + "\n\tif true {\n\t\t" + text + "\n\t}\n"}
}

// inCluster makes the configurations that client-go finds for itself those of the host: a
// module is in the cluster, and has no files to say so. The stand-in has the same URL.
var inCluster = []edit{
	body(
		"rest/config.go", "func InClusterConfig() (*Config, error) {",
		`const json = "application/json"; return &Config{Host: "http://wasmctl.invalid", ContentConfig: ContentConfig{ContentType: json, AcceptContentTypes: json}}, nil`,
	),
	body("tools/clientcmd/client_config.go", "func (config *inClusterClientConfig) Possible() bool {", "return true"),
}

// noTransport makes a variable of apimachinery something else than http.DefaultTransport:
// that alone would keep all of net/http's client and crypto/tls in programs without one.
// What is read of it is its timeouts.
var noTransport = []edit{{
	"pkg/util/net/http.go", "var defaultTransport = http.DefaultTransport.(*http.Transport)\n",
	"var defaultTransport = &http.Transport{TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second}\n",
}}

// apply edits a file of the module in dir, where it is a link.
func (e edit) apply(dir string) error {
	file := filepath.Join(dir, filepath.FromSlash(e.file))
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600)
}

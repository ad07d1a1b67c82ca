// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Config returns a setting: its current value, otherwise the default in
// Manifest.Config, otherwise "". Settings can change while the module is
// loaded, so read them in each run. The error is an *Error.
func (c *Context) Config(key string) (string, error) {
	v, err := c.g.config(key)
	return v.String(), err
}

// AllConfig returns all settings. The error is an *Error.
func (c *Context) AllConfig() (map[string]string, error) {
	v, err := c.g.config("")
	return v.StringMap(), err
}

func (g *guest) config(key string) (Value, error) {
	b := wire.NewBuilder(g.request[:0])
	b.String("key", key)
	g.request = b.End()
	body, err := g.do(&imports.ConfigGet, g.request)
	if err != nil {
		return Value{}, err
	}
	return Value{body}, nil
}

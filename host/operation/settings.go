// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"errors"
	"fmt"
	"maps"

	"github.com/wasmctl/wasmctl/abi"
)

// ErrRefused matches the error of settings that a guest does not accept. The reason is an
// *abi.ResultError in the same error.
var ErrRefused = errors.New("settings refused")

// Settings are the values that config_get serves and configure receives, encoded once. They
// do not change.
type Settings struct {
	Gen     int64             // counts changes, from 1
	Plain   map[string]string // must not be changed
	Message []byte            // for configure

	all    []byte
	values map[string][]byte
}

var msgpackNil = []byte{0xc0}

// NewSettings encodes settings.
func NewSettings(gen int64, m map[string]string) *Settings {
	s := &Settings{Gen: gen, Plain: m, all: mustEncode(m), values: make(map[string][]byte, len(m))}
	for k, v := range m {
		s.values[k] = mustEncode(v)
	}
	s.Message = abi.AppendSettings(nil, &abi.Settings{Generation: gen, Values: m})
	return s
}

// Next returns settings with these values. They have the same number if the values are
// equal, and otherwise the next one. A nil Settings has the number 0.
func (s *Settings) Next(values map[string]string) *Settings {
	switch {
	case s == nil:
		return NewSettings(1, values)
	case maps.Equal(s.Plain, values):
		return s
	}
	return NewSettings(s.Gen+1, values)
}

// CheckSize returns an error if the settings are too large for a message.
func (s *Settings) CheckSize() error {
	if n := len(s.Message); n > abi.MaxBytes {
		return fmt.Errorf("settings of %d bytes: %w", n, abi.ErrTooLarge)
	}
	return nil
}

// mustEncode encodes strings, which cannot fail.
func mustEncode(v any) []byte {
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		panic("BUG: settings: " + err.Error())
	}
	return b
}

// get answers config_get.
func (s *Settings) get(b []byte) abi.Response {
	req, _, err := abi.DecodeRequest[abi.ConfigRequest](b)
	if err != nil {
		return Refuse(abi.StatusBadRequest, "BadRequest", "config_get: "+err.Error())
	}
	if req.Key == "" {
		return abi.Response{Body: s.all}
	}
	if v, ok := s.values[req.Key]; ok {
		return abi.Response{Body: v}
	}
	return abi.Response{Body: msgpackNil}
}

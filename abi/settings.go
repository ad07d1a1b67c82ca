// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"fmt"
	"maps"
	"slices"
)

// Settings is the input of configure.
type Settings struct {
	// Generation counts changes of the settings, from 1.
	Generation int64
	Values     map[string]string
}

// AppendSettings appends the message. Equal settings give equal bytes.
func AppendSettings(dst []byte, s *Settings) []byte {
	dst = AppendMapHead(dst, 3)
	dst = AppendInt(appendString(dst, keyV), Version)
	dst = AppendInt(appendString(dst, keyConfigGen), s.Generation)
	dst = AppendMapHead(appendString(dst, keyConfig), len(s.Values))
	for _, k := range slices.Sorted(maps.Keys(s.Values)) {
		dst = appendString(appendString(dst, k), s.Values[k])
	}
	return dst
}

// DecodeConfigureResult decodes the output of configure. refusal is nil if the guest accepts the settings, as it does with an empty
// message.
func DecodeConfigureResult(b []byte) (refusal *ResultError, unknown []string, err error) {
	r := reader{b: b}
	unknown, err = r.message(func(key string) (bool, error) {
		if key != keyError {
			return false, nil
		}
		return r.resultError(&refusal)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("configure: %w", err)
	}
	return refusal, unknown, nil
}

// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"fmt"
	"time"
)

// Conversion is the input of convert: objects of one kind to convert to one version.
type Conversion struct {
	// ID is the uid of the ConversionReview.
	ID         string
	Controller string
	// To is the apiVersion to convert to, such as "batch.example.com/v2".
	To string
	// Objects has the msgpack of each object, without managedFields; each may have another version.
	Objects [][]byte
	// ConfigGen counts changes of the settings.
	ConfigGen int64
	// Deadline is when the call will be interrupted.
	Deadline time.Time
	// Caps lists the capabilities of this host.
	Caps []string
}

// AppendConversion appends the message.
func AppendConversion(dst []byte, c *Conversion) []byte {
	dst = AppendMapHead(dst, 8)
	dst = AppendInt(appendString(dst, keyV), Version)
	for _, s := range [][2]string{{keyID, c.ID}, {keyController, c.Controller}, {keyTo, c.To}} {
		dst = appendString(appendString(dst, s[0]), s[1])
	}
	dst = AppendInt(appendString(dst, keyConfigGen), c.ConfigGen)
	dst = AppendInt(appendString(dst, keyDeadlineMS), unixMS(c.Deadline))
	dst = appendStrings(appendString(dst, keyCaps), c.Caps)
	dst = AppendArrayHead(appendString(dst, keyObjects), len(c.Objects))
	for _, o := range c.Objects {
		dst = append(dst, o...)
	}
	return dst
}

// ConversionResult is the output of convert.
type ConversionResult struct {
	// Objects are the converted objects, in the order of the request.
	Objects [][]byte
	// Error is not nil if the guest could not convert them.
	Error *ResultError
	// Unknown lists keys of the message that this host does not know.
	Unknown []string
}

// DecodeConversionResult decodes the output of convert. want is the number of objects in the request.
func DecodeConversionResult(b []byte, want int) (ConversionResult, error) {
	var res ConversionResult
	var err error
	r := reader{b: b}
	res.Unknown, err = r.message(func(key string) (bool, error) {
		switch key {
		case keyObjects:
			return r.list(func() error {
				if len(res.Objects) == want {
					return fmt.Errorf("%w: more objects than the %d of the request", ErrType, want)
				}
				return r.appendMap(&res.Objects)
			})
		case keyError:
			return r.resultError(&res.Error)
		}
		return false, nil
	})
	switch {
	case err != nil:
	case res.Error != nil:
		res.Objects = nil
	case len(res.Objects) != want:
		err = fmt.Errorf("%w: %d objects for the %d of the request", ErrType, len(res.Objects), want)
	}
	if err != nil {
		return ConversionResult{}, fmt.Errorf("conversion: %w", err)
	}
	return res, nil
}

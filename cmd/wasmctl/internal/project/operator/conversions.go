// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Conversion is a kind whose versions the program converts.
type Conversion struct {
	// Kind is the name of the types, and Hub the version that all others are converted to and from; it is
	// empty if no type is the hub. Spokes are the other versions. A version is the name of a package.
	Kind   string   `json:"kind"`
	Hub    string   `json:"hub,omitempty"`
	Spokes []string `json:"spokes,omitempty"`

	dir string // of the packages
}

// converts matches the methods of conversion.Hub and conversion.Convertible.
var converts = regexp.MustCompile(`(?m)^func \((?:\w+\s+)?\*?(\w+)\) (Hub\(\)|ConvertTo\(\w+ (?:\w+\.)?Hub\) error)`)

// conversions returns the conversions of the program, by kind. Kinds with one name differ by the folder of
// their packages, such as api/batch.
func conversions(packages []pkg) (list []Conversion, err error) {
	err = eachSource(packages, func(file string, src []byte) error {
		for _, m := range converts.FindAllSubmatch(src, -1) {
			dir, version := filepath.Split(filepath.Dir(file))
			kind := string(m[1])
			i := slices.IndexFunc(list, func(c Conversion) bool { return c.Kind == kind && c.dir == dir })
			if i < 0 {
				i, list = len(list), append(list, Conversion{Kind: kind, dir: dir})
			}
			if strings.HasPrefix(string(m[2]), "Hub") {
				list[i].Hub = version
			} else {
				list[i].Spokes = append(list[i].Spokes, version)
			}
		}
		return nil
	})
	for i := range list {
		slices.Sort(list[i].Spokes)
	}
	slices.SortFunc(list, func(a, b Conversion) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.dir, b.dir))
	})
	return list, err
}

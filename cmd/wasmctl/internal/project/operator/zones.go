// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"path/filepath"
	"regexp"
)

// zonesTag makes the stand-in import the time zone data.
const zonesTag = "wasmctl_tzdata"

// zoneByName matches code that loads a time zone by name, for example for schedules. A module has
// no files, so it needs the data.
var zoneByName = regexp.MustCompile(`time\.LoadLocation\(`)

// anyMatches reports whether the text is in a source file of the program.
func anyMatches(packages []pkg, text *regexp.Regexp) (bool, error) {
	for i := range packages {
		if !packages[i].ofProgram() {
			continue
		}
		for _, name := range packages[i].GoFiles {
			src, err := os.ReadFile(filepath.Join(packages[i].Dir, name))
			if err != nil {
				return false, err
			}
			if text.Match(src) {
				return true, nil
			}
		}
	}
	return false, nil
}

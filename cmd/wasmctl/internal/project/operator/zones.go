package operator

import (
	"os"
	"path/filepath"
	"regexp"
)

// zonesTag makes the stand-in import the data of time zones.
const zonesTag = "wasmctl_tzdata"

// zoneByName is how a program asks for a time zone by its name, as one does with
// schedules. A module has no files, so it needs the data of them.
var zoneByName = regexp.MustCompile(`time\.LoadLocation\(`)

// says reports whether a source file of the program has the text.
func says(packages []pkg, text *regexp.Regexp) (bool, error) {
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

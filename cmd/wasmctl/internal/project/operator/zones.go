package operator

import (
	"bytes"
	"os"
	"path/filepath"
)

// zonesTag makes the stand-in import the data of time zones.
const zonesTag = "wasmctl_tzdata"

// namesZones reports whether the program asks for time zones by their names, as one
// does with schedules. A module has no files, so it needs the data of them.
func namesZones(packages []pkg) (bool, error) {
	for i := range packages {
		if !packages[i].ofProgram() {
			continue
		}
		for _, name := range packages[i].GoFiles {
			src, err := os.ReadFile(filepath.Join(packages[i].Dir, name))
			if err != nil {
				return false, err
			}
			if bytes.Contains(src, []byte("time.LoadLocation(")) {
				return true, nil
			}
		}
	}
	return false, nil
}

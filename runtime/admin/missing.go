package admin

import (
	"encoding/json"
	"time"
)

// MissingRight is one right that a module has asked for and does not have. There are
// at most twenty.
type MissingRight struct {
	// Rule would allow it, as it stands in a manifest or a grant; Missing says what
	// lacks it.
	Rule    json.RawMessage `json:"rule"`
	Missing string          `json:"missing"`
	// Count is how often it was asked for, Last for which object, LastTime when.
	Count    uint64    `json:"count"`
	Last     string    `json:"last"`
	LastTime time.Time `json:"lastTime"`
}

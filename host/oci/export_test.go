package oci

// Highest is versions.highest of a range.
func Highest(s string, tags []string) string {
	v, err := parseRange(s)
	if err != nil {
		return err.Error()
	}
	return v.highest(tags)
}

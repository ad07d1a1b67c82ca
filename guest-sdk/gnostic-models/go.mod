// A replacement has the module line of what it replaces.
module github.com/google/gnostic-models

go 1.24.0

require google.golang.org/protobuf v1.36.5

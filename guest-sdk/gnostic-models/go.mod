// A replacement must have the module line of the original.
module github.com/google/gnostic-models

go 1.24.0

require google.golang.org/protobuf v1.36.5

package project

// checkout is the repository that a development build was built from; make build
// sets it by the linker. A release has none.
var checkout string

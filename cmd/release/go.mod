module github.com/wasmctl/wasmctl/cmd/release

go 1.26.0

require (
	github.com/opencontainers/go-digest v1.0.0
	github.com/opencontainers/image-spec v1.1.1
	golang.org/x/crypto/x509roots/fallback v0.0.0-20261030153154-30a33513ff6d
	oras.land/oras-go/v2 v2.6.2
)

require golang.org/x/sync v0.22.0 // indirect

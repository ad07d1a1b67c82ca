# wasmctl alone, static, from scratch. See docs/controllers.md.
#
#   docker build --build-arg VERSION="$(git describe --tags --always)" --build-arg COMMIT="$(git rev-parse HEAD)" -t wasmctl .
#
# Modules in modules/*.wasm are copied to /modules/*.wasm in the image. .dockerignore keeps everything that the build
# does not need out of the context, including .git: that is why the version is an argument.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev COMMIT
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /out/wasmctl ./cmd/wasmctl && \
    mkdir -p modules

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/wasmctl /wasmctl
COPY --from=build /src/modules /modules
USER 65532:65532
ENTRYPOINT ["/wasmctl"]

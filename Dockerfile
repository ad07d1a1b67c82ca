# wasmctl alone, static, from scratch. See docs/controllers.md.
#
#   docker build -t wasmctl .
#
# Modules in modules/*.wasm are in the image as /modules/*.wasm.
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/wasmctl ./cmd/wasmctl && mkdir -p modules

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/wasmctl /wasmctl
COPY --from=build /src/modules /modules
USER 65532:65532
ENTRYPOINT ["/wasmctl"]

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"
)

// sums is the name of the file with the checksums of all other files.
const sums = "SHA256SUMS"

//go:embed krew.yaml.tmpl
var krew string

// parts are the inputs of a release.
type parts struct {
	// binaries are the paths of programs called NAME-OS-ARCH.
	binaries []string
	// share has a directory for each NAME, with the files that accompany the program.
	share string
	// chart is the directory of the Helm chart.
	chart   string
	version string
	at      time.Time
}

// publish returns the files of a release, by name: an archive and a list of the modules for each binary, the image,
// the chart, the manifest of a plugin of kubectl, and the checksums. The same parts give the same bytes.
func publish(p parts) (map[string][]byte, error) {
	files := map[string][]byte{}
	var plugin []archive
	var linux []string
	for _, binary := range p.binaries {
		a, err := p.archive(binary)
		if err != nil {
			return nil, err
		}
		if files[a.file+".cdx.json"], err = billOfMaterials(binary, p.at); err != nil {
			return nil, err
		}
		files[a.file+".tar.gz"] = a.content
		if a.name != "wasmctl" {
			continue
		}
		plugin = append(plugin, a)
		if a.OS == "linux" {
			linux = append(linux, binary)
		}
	}
	if len(linux) > 0 {
		image, _, err := imageOf(p.version, p.at, linux)
		if err != nil {
			return nil, err
		}
		var all []file
		for _, name := range slices.Sorted(maps.Keys(image)) {
			all = append(all, file{name, image[name], false})
		}
		files["wasmctl-image.tar"] = tarOf(p.at, all)
	}
	chart, err := filesOf(p.chart, "wasmctl") // Helm wants the name of the chart before the names of its files
	if err != nil {
		return nil, err
	}
	files["wasmctl-"+strings.TrimPrefix(p.version, "v")+".tgz"] = compress(tarOf(p.at, chart))
	var manifest bytes.Buffer
	if err := template.Must(template.New("krew").Parse(krew)).Execute(&manifest, map[string]any{"Version": p.version, "Archives": plugin}); err != nil {
		return nil, err
	}
	files["wasmctl-krew.yaml"] = manifest.Bytes()
	files[sums] = checksums(files)
	return files, nil
}

// archive is the archive of a program for one platform. The template of krew reads its exported fields.
type archive struct {
	name, file string
	content    []byte

	OS, Arch, SHA256 string
}

// archive packs a program with the files that accompany it.
func (p parts) archive(binary string) (archive, error) {
	a := archive{file: filepath.Base(binary)}
	words := strings.Split(a.file, "-")
	if len(words) != 3 {
		return a, fmt.Errorf("binary[%s]: want a name like wasmctl-linux-amd64", binary)
	}
	a.name, a.OS, a.Arch = words[0], words[1], words[2]
	program, err := os.ReadFile(binary)
	if err != nil {
		return a, err
	}
	others, err := filesOf(filepath.Join(p.share, a.name), "")
	if err != nil {
		return a, err
	}
	a.content = compress(tarOf(p.at, append([]file{{a.name, program, true}}, others...)))
	a.SHA256 = sha256Of(a.content)
	return a, nil
}

func sha256Of(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// checksums returns the file that sha256sum --check reads.
func checksums(files map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%s  %s\n", sha256Of(files[name]), name)
	}
	return b.Bytes()
}

// replaceDir writes the files of a release to a directory, which then has no others. If that fails, for example because the disk is full, the
// directory stays as it was.
func replaceDir(dir string, files map[string][]byte) error {
	next := filepath.Clean(dir) + ".new"
	if err := errors.Join(os.RemoveAll(next), writeFiles(next, files)); err != nil {
		return errors.Join(err, os.RemoveAll(next))
	}
	return errors.Join(os.RemoveAll(dir), os.Rename(next, dir))
}

package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeBill writes which modules, in which versions, are in the library and in the command: what the Go linker has written into both.
func (b *build) writeBill(name string) error {
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = "" // the same tree, the same bytes
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{BOMRef: "weft", Type: cyclonedx.ComponentTypeApplication, Name: "weft", Version: b.version,
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "BSD-3-Clause"}}}}}
	seen := map[string]bool{}
	var all []cyclonedx.Component
	for _, file := range []string{filepath.Join(b.dist, "lib", library), filepath.Join(b.dist, "bin/weft")} {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return err
		}
		ref := func(module, version string) string { return fmt.Sprintf("pkg:golang/%s@%s", module, version) }
		if std := ref("std", info.GoVersion); !seen[std] {
			seen[std] = true
			all = append(all, cyclonedx.Component{BOMRef: std, Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion, PackageURL: std})
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			c := cyclonedx.Component{BOMRef: ref(m.Path, m.Version), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: ref(m.Path, m.Version)}
			if seen[c.BOMRef] {
				continue
			}
			seen[c.BOMRef] = true
			if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
				raw, err := base64.StdEncoding.DecodeString(sum)
				if err != nil {
					return fmt.Errorf("%s: %w", m.Path, err)
				}
				c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(x, y cyclonedx.Component) int { return cmp.Compare(x.BOMRef, y.BOMRef) })
	bom.Components = &all
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	e := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON)
	e.SetPretty(true)
	if err := e.Encode(bom); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

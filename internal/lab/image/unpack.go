package image

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Missing is a program of the host that the lab needs.
type Missing struct {
	Program, Package, For string
}

func (m *Missing) Error() string {
	return fmt.Sprintf("%s is not installed, and %s: install the package %s", m.Program, m.For, m.Package)
}

// Tool finds a program of the host, or names the package that has it.
func Tool(program, pkg, purpose string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", &Missing{program, pkg, purpose}
	}
	return path, nil
}

// compressions are told apart by their first bytes.
var compressions = []struct{ magic, tool, pkg string }{
	{"\xfd7zXZ\x00", "xz", "xz-utils"},
	{"\x28\xb5\x2f\xfd", "zstd", "zstd"},
	{"\x02\x21\x4c\x18", "lz4", "lz4"},
	{"BZh", "bzip2", "bzip2"},
	{"\x1f\x8b", "", ""},
}

// decompress undoes whatever data was compressed with; what names it in errors.
func decompress(ctx context.Context, what string, data []byte) ([]byte, error) {
	for _, c := range compressions {
		if !bytes.HasPrefix(data, []byte(c.magic)) {
			continue
		}
		if c.tool == "" {
			r, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			out, err := io.ReadAll(r)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			return out, nil
		}
		tool, err := Tool(c.tool, c.pkg, what+" is compressed with it")
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, tool, "-dc")
		var out, says bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), &out, &says
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("%s -dc of %s: %w: %s", c.tool, what, err, strings.TrimSpace(says.String()))
		}
		return out.Bytes(), nil
	}
	return data, nil
}

// The offsets of the x86 boot header that lead to the compressed kernel.
const (
	offSetupSects    = 0x1f1
	offMagic         = 0x202
	offVersion       = 0x206
	offPayloadOffset = 0x248
	offPayloadLength = 0x24c
)

// vmlinux takes the ELF kernel out of a bzImage: QEMU starts it at its PVH entry, without the decompressor, which is slow
// on an emulated CPU.
func vmlinux(ctx context.Context, bz []byte) ([]byte, error) {
	bad := func(why string) ([]byte, error) {
		return nil, fmt.Errorf("the package's vmlinuz is no x86 kernel image that weft can read: %s", why)
	}
	if len(bz) < offPayloadLength+4 || string(bz[offMagic:offMagic+4]) != "HdrS" {
		return bad("it has no boot header")
	}
	if v := binary.LittleEndian.Uint16(bz[offVersion:]); v < 0x208 {
		return bad(fmt.Sprintf("its boot protocol is %d.%d, want 2.8 or later", v>>8, v&255))
	}
	sects := int(bz[offSetupSects])
	if sects == 0 {
		sects = 4
	}
	at := uint64(sects+1)*512 + uint64(binary.LittleEndian.Uint32(bz[offPayloadOffset:]))
	n := uint64(binary.LittleEndian.Uint32(bz[offPayloadLength:]))
	if at+n > uint64(len(bz)) || n < 8 {
		return bad(fmt.Sprintf("its payload, %d bytes at %d, lies outside the file's %d bytes", n, at, len(bz)))
	}
	payload := bz[at : at+n]
	// Compressors that do not say the unpacked size themselves are followed by it.
	if !bytes.HasPrefix(payload, []byte("\x1f\x8b")) {
		payload = payload[:n-4]
	}
	out, err := decompress(ctx, "the kernel", payload)
	if err != nil {
		return nil, err
	}
	if _, err := elf.NewFile(bytes.NewReader(out)); err != nil {
		return bad("what it unpacks to is not ELF: " + err.Error())
	}
	return out, nil
}

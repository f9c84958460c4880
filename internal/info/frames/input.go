package frames

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// mostInput bounds what is read: a handshake has some ten thousand bytes.
const mostInput = 1 << 20

// Read finds the bytes that an argument means: a file of that name, raw or in hex, "-" for standard input, else hex itself.
func Read(arg string, stdin io.Reader) ([]byte, error) {
	if arg == "-" {
		return read("standard input", stdin)
	}
	f, err := os.Open(arg)
	if err == nil {
		defer f.Close()
		return read(arg, f)
	}
	b, bad := Hex(arg)
	if bad == nil {
		return b, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && len(arg) < 256 {
		return nil, fmt.Errorf("%w, and %q is no hex: %w", err, short(arg), bad)
	}
	return nil, fmt.Errorf("%q is no file and no hex: %w", short(arg), bad)
}

func short(arg string) string { return arg[:min(len(arg), 64)] }

func read(name string, r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, mostInput+1))
	if err != nil {
		return nil, err
	}
	if len(b) > mostInput {
		return nil, fmt.Errorf("%s has more than %d bytes: give the part that begins with a handle or a handshake", name, mostInput)
	}
	if !bytes.ContainsFunc(b, func(c rune) bool { return !strings.ContainsRune(hexText, c) }) {
		if raw, err := Hex(string(b)); err == nil {
			return raw, nil
		}
	}
	return b, nil
}

// hexText is what hex may be written with.
const hexText = "0123456789abcdefABCDEFxX\\ \t\r\n,:-{};"

// Hex reads bytes as people and tools write them: 77656674, 77:65, 0x77, 0x65, \x77\x65.
func Hex(text string) ([]byte, error) {
	var digits strings.Builder
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune("\\ \t\r\n,:-{};", c) }) {
		number := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(word, "0x"), "0X"), "x")
		if len(number) == 1 || number != word && len(number)%2 == 1 {
			number = "0" + number
		}
		digits.WriteString(number)
	}
	if digits.Len() == 0 {
		return nil, errors.New("there are no digits")
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		return nil, err
	}
	return b, nil
}

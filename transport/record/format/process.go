package format

import (
	"bytes"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Started is when a process began, in ticks of the machine, by its file in /proc;
// 0: the file does not tell.
func Started(stat string) uint64 {
	const place = 22 - 3 // the first word behind the name is the third
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0
	}
	words := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(words) <= place {
		return 0
	}
	n, err := strconv.ParseUint(string(words[place]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// PIDs is the number of a namespace of processes, by its file in /proc; 0: the file
// does not tell.
func PIDs(ns string) uint64 {
	var s syscall.Stat_t
	if syscall.Stat(ns, &s) != nil {
		return 0
	}
	return s.Ino
}

// Boot is drawn by the kernel when the machine starts, by its file in /proc; zero: the
// file does not tell.
func Boot(file string) (id [IDLen]byte) {
	text, err := os.ReadFile(file)
	if err != nil {
		return id
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(raw) != len(id) {
		return id
	}
	return [IDLen]byte(raw)
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"weft/internal/link"
)

// ownLibrary is the library that was built or installed with this program.
func ownLibrary() (string, error) {
	return own(link.Dist.Library, "--plugin names another library")
}

// pluginAt is what a flag names: a file, by its whole path, or what dlopen shall find; without a name the own library.
func pluginAt(flag, name string) (string, error) {
	switch {
	case name == "":
		return ownLibrary()
	case !strings.Contains(name, "/") && !exists(name):
		return name, nil
	case !exists(name):
		return "", fmt.Errorf("%s %s: no such file", flag, name)
	}
	return filepath.Abs(name)
}

// ownHost is the C host that was built or installed with this program.
func ownHost() (string, error) {
	return own(func(d link.Dist) string { return d.Program("weft-host") }, "--host names another one")
}

// own looks in the folder above this program's, which is laid out as a link.Dist.
func own(file func(link.Dist) string, remedy string) (string, error) {
	me, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("this program's own path: %w", err)
	}
	path := file(link.Dist(filepath.Dir(filepath.Dir(me))))
	if !exists(path) {
		return "", fmt.Errorf("%s is not there: build it with make; %s", path, remedy)
	}
	return path, nil
}

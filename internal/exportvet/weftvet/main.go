// Command weftvet runs weft's own checks for go vet: go vet -vettool=weftvet ./...
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"weft/internal/exportvet"
)

func main() { unitchecker.Main(exportvet.Analyzer) }

// Command second is the other Go library in the process of a test: its constructor-started runtime keeps goroutines and the collector busy.
package main

import "C" // makes it a C library

import (
	"runtime"
	"time"
)

// litter keeps its last allocation reachable for a moment, so that the collector has work.
var litter []byte

func init() {
	go func() {
		for {
			litter = make([]byte, 1<<16)
			time.Sleep(time.Millisecond)
		}
	}()
	go func() {
		for {
			runtime.GC()
			time.Sleep(20 * time.Millisecond)
		}
	}()
}

func main() {}

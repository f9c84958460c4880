//go:build !amd64

package lab

func tscKHz() int64 { return 0 }

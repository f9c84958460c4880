// Package host runs tools/host, the C process that loads a plugin as NCCL does,
// and calls the plugin through it: no Go process ever opens a Go library.
//
// A Host is one process. Every call has a deadline; when the process dies, all
// calls return a *DeathError that names the signal and the last plugin call of
// each thread. A plugin's own refusal is a *ResultError:
//
//	comm, err := net.Listen(0, handle)
//	switch host.Code(err) {
//	case host.Success:
//	case host.SystemError:
//	}
//
// The protocol is in tools/host/PROTOCOL.md; Host.Call reaches every command.
package host

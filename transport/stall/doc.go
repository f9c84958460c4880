// Package stall looks at what a process's comms wait for, and says in the host's
// log, while it happens, that something stands still, who waits for whom, and for
// what:
//
//  1. Twice a second a goroutine looks at each comm (monitor.go), which is compared
//     with the look before (judge.go). Nothing of this runs on the host's threads.
//  2. Comms that wait for the same process between the same devices are one wait
//     (wait.go). The process is asked, over the control connection (ask.go), what it
//     has done for it and what it waits for itself (serve.go). Its reply, or that
//     there is none, is the verdict (verdict.go).
//  3. A wait that lasts is one line of the log, again each time it has lasted twice
//     as long, and once when it is over (say.go).
//  4. What the kernel has to send again is counted; a path that loses packets is one
//     line too (loss.go).
//
// Monitor has the goroutine, the lock and the sessions; all else is plain data.
// A process without a monitor that runs replies all the same.
package stall

package tcp

import (
	"weft/internal/knob"
	"weft/internal/report"
)

// maxStreams bounds the product of the two NCCL knobs, as in NCCL.
const maxStreams = 64

// maxThreads is how many helper threads NCCL's sockets have at most, whatever is asked.
const maxThreads = 16

// streamCounts are NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD with their
// automatic values: the two clouds whose NICs limit a single flow need several.
func streamCounts(k *knob.Values, vendor string) (threads, perThread int) {
	const auto = -2
	autoThreads, autoPer := 0, 1
	switch vendor {
	case "0x1d0f": // Amazon
		autoThreads, autoPer = 2, 8
	case "0x1ae0": // Google
		autoThreads, autoPer = 4, 1
	}
	threads, perThread = int(k.Int(knob.SocketNThreads)), int(k.Int(knob.NSocksPerThread))
	if threads == auto {
		threads = autoThreads
	}
	if perThread == auto {
		perThread = autoPer
	}
	return threads, perThread
}

// cutStreams multiplies. Zero threads is NCCL's way to say "the calling thread
// alone", and then the count of sockets per thread has no meaning there.
func cutStreams(threads, perThread int, dev string, say bool, log report.Logger) int {
	if threads == 0 {
		return 1
	}
	if threads > maxThreads {
		if say {
			log.Warn("%s: NCCL_SOCKET_NTHREADS=%d counts as %d, the most that NCCL takes", dev, threads, maxThreads)
		}
		threads = maxThreads
	}
	if threads*perThread > maxStreams {
		cut := maxStreams / threads
		if say {
			log.Warn("%s: NCCL_SOCKET_NTHREADS=%d x NCCL_NSOCKS_PERTHREAD=%d is above %d streams per connection; using %d x %d",
				dev, threads, perThread, maxStreams, threads, cut)
		}
		perThread = cut
	}
	return threads * perThread
}

// Package faults holds the tests in which processes stop, die, fork, leave, see calls
// of libibverbs and work requests fail at every place, run out
// of descriptors or hear strangers while the built library moves data between them.
//
// They run without privileges. How long and how often is for CI; more is asked for with
//
//	WEFT_TEST_STOP=60s     how long a peer stays stopped
//	WEFT_TEST_KILLS=200    at how many points a peer is killed
package faults

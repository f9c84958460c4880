// Package card opens cards of libibverbs: what is true of a whole card, whoever
// uses it. What is made on one, in whose name its context is passed to the library,
// is made in packages above, by those who hold it.
//
// libibverbs is reached through one table of functions (ibv.Calls), which tests
// replace: no test needs hardware.
package card

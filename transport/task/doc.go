// Package task holds what work in the background needs: goroutines whose panic
// ends no host, bounds on how many run at once, stack and descriptors for them,
// and ids that name what they work on.
package task

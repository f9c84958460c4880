// Package image makes what a lab machine boots, a kernel and an initial RAM file system, out of a distribution's kernel
// package, and keeps both in the user's cache; nothing is installed.
package image

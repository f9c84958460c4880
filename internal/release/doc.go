// Package release acts as NCCL's releases from 2.4 on, and RCCL, act towards a
// plugin: where they look for the file, which table they bind, and what they call
// in which order on which thread, through host processes.
//
// What a release looks up and its limits are data (headers/facts); what it does is
// the few behaviours of behave.go, each for a range of releases.
package release

// Package prom gives what processes have counted, and what the counters of cards say,
// to Prometheus.
package prom

// Package tuner is the slow half of the tuner tables: what a communicator may not
// use, decided when it begins. NCCL asks before every collective, which C replies
// to (plugin/tune.c).
package tuner

// Package conform is the net plugin contract as a table of rules, each with a
// script that finds out whether a plugin keeps it.
//
// Rules run against any library, one or two fresh host processes each, so that
// a rule that kills its process spoils no other. Checks judge one thing only:
// what another rule judges, they take as it comes.
package conform

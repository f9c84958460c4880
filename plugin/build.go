package plugin

// Build names this build in the log and to peers. It changes with a release,
// not with a commit: the same source gives the same library.
const Build = "weft 0.1.0-dev"

package report

// Plural returns what follows a noun that stands for n things.
func Plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

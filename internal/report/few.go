package report

import (
	"fmt"
	"strings"
)

// Few joins a list that may be too long for a line of NCCL's log, 1024 bytes.
func Few(list []string, most int, by string) string {
	if n := len(list) - most; n > 0 {
		list = append(list[:most:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, by)
}

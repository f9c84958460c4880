package choose

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// Ranks on different processors must come to the same times to the last bit, or they choose different algorithms and wait for
// each other. Go may join a product and a sum, which rounds once instead of twice, where the processor can: on arm64, and on
// amd64 from GOAMD64=v3 on. So the compiler's listing must have no such instruction.
func TestRanksComputeAlike(t *testing.T) {
	fused := regexp.MustCompile(`(?m)^.*\(\S*/((?:choose|tuner)/\w+\.go:\d+)\)\s+V?FN?M(?:ADD|SUB)\w*\s.*$`)
	for _, env := range []string{"GOARCH=arm64", "GOARCH=amd64"} {
		cmd := exec.Command("go", "build", "-gcflags=-S", "weft/collnet/choose", "weft/tuner")
		cmd.Env = append(os.Environ(), env, "GOAMD64=v3", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v, %s: %v\n%s", cmd, env, err, out)
		}
		if !regexp.MustCompile(`(?m)\b(FMULD|V?MULSD)\b`).Match(out) {
			t.Errorf("%s: the listing has no product", env)
		}
		for _, m := range fused.FindAllSubmatch(out, -1) {
			t.Errorf("%s: %s joins a product and a sum: make the product float64(a * b)\n%s", env, m[1], m[0])
		}
	}
}

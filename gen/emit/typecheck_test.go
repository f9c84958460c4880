package emit

import (
	"os"
	"strings"
	"testing"

	"weft/gen/output"
	"weft/gen/parse"
)

// TestTypeCheck breaks emitted Go in ways that a bug of the generator would.
func TestTypeCheck(t *testing.T) {
	unit, err := parse.NCCL(os.DirFS("../../headers"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files(unit, os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, old, new, want string }{
		{"what is emitted", "", "", "", ""},
		{"wrong offset", "abi/zz_net_v12.go", "MaxComms)-48]", "MaxComms)-44]", "abi/zz_net_v12.go"},
		{"wrong size", "abi/zz_net_v4.go", "Sizeof(NetPropertiesV4{})-40]", "Sizeof(NetPropertiesV4{})-48]", "abi/zz_net_v4.go"},
		{"unknown type", "abi/zz_iface_net.go", "*NetProperties\n", "*NetProperty\n", "undefined: NetProperty"},
		{"missing argument", "plugin/zz_exports.go", "ListenComm:", "ListenCom:", "unknown field ListenCom"},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := make([]output.File, len(files))
			copy(changed, files)
			for i, f := range changed {
				if f.Path == c.path {
					if !strings.Contains(string(f.Data), c.old) {
						t.Fatalf("%s does not contain %q", c.path, c.old)
					}
					changed[i].Data = []byte(strings.Replace(string(f.Data), c.old, c.new, 1))
				}
			}
			err := TypeCheck("../..", changed)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

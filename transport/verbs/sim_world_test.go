package verbs

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"weft/internal/build"
	"weft/internal/knob"
	"weft/internal/report"
)

// The simulated library of tools/simverbs is the same C that a real device
// would be reached through. A process is one world, so all tests here share this one:
//
//	simA --- 10.9.1.0/24 --- simB        simI: InfiniBand, two ports        simX: no DMA-BUF, 32 requests, no PCI path
const simWorld = `{"dir":%q,"devices":[
 {"name":"simB","pci":"0000:82:00.1","gids":["10.9.1.2/24","10.9.1.2/24 v1"],"mtu":1024,"ece_vendor":5564,"ece_options":12},
 {"name":"simA","pci":"0000:81:00.0","pkeys":[65535,273,33041],"gids":["10.9.1.1/24","2001:db8::1/64"],"speed":400000,"ece_vendor":5564,"ece_options":12},
 {"name":"simI","pci":"0000:83:00.0","link":"infiniband","pkeys":[65535,546],"ports":[{"gids":[]},{"gids":[]}]},
 {"name":"simX","gids":["10.9.3.1/24"],"dmabuf":0,"max_qp_wr":32,"max_inline":100}]}`

// sim builds the library once and returns its path and a way to command it.
var sim = sync.OnceValues(func() (string, error) {
	root, err := build.Root()
	if err != nil {
		return "", err
	}
	sources, err := filepath.Glob(filepath.Join(root, "tools", "simverbs", "*.c"))
	if err != nil {
		return "", err
	}
	flags := []string{"-I" + filepath.Join(root, "headers"), "-fvisibility=hidden", "-Wl,--version-script=" + filepath.Join(root, "tools", "simverbs", "libibverbs.map")}
	for _, s := range sources {
		if base := filepath.Base(s); base != "mlx5.c" && base != "text.c" {
			flags = append(flags, s)
		}
	}
	lib, err := build.Plugin("tools/simverbs/text.c", append(flags, "-lpthread")...)
	if err != nil {
		return "", err
	}
	state, err := os.MkdirTemp("", "sim")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { os.RemoveAll(state) })
	os.Setenv("WEFT_SIMVERBS", fmt.Sprintf(simWorld, state)) // the library reads C's environment, which this reaches too
	os.Setenv("WEFT_SIMVERBS_CTL", filepath.Join(state, "ctl.sock"))
	return lib, nil
})

var atEnd []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, f := range atEnd {
		f()
	}
	os.Exit(code)
}

// command says one line to the simulation.
func command(t *testing.T, format string, a ...any) {
	t.Helper()
	c, err := net.Dial("unix", os.Getenv("WEFT_SIMVERBS_CTL"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	line := fmt.Sprintf(format, a...)
	fmt.Fprintln(c, line)
	if answer, err := bufio.NewReader(c).ReadString('\n'); err != nil || answer != "ok\n" {
		t.Fatalf("%s: %q, %v", line, answer, err)
	}
}

// openSim opens a provider over the simulation.
func openSim(t *testing.T, env map[string]string) (*Provider, *report.Recorder, error) {
	t.Helper()
	lib, err := sim()
	if err != nil {
		t.Fatal(err)
	}
	if env == nil {
		env = map[string]string{}
	}
	env["NCCL_IBVERBS_LIB"] = lib
	log := new(report.Recorder)
	p, err := Open(Config{Knobs: knob.Parse(env), Log: log})
	return p, log, err
}

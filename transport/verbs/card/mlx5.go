package card

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// mlx5Vendors are the vendor numbers of cards that libmlx5 may serve.
var mlx5Vendors = map[uint32]bool{0x02c9: true, 0x15b3: true}

// loadMLX5 finds the libmlx5 that belongs to the libibverbs in use: the one
// beside it, if the user named a file, else the loader's.
func (l *Library) loadMLX5() error {
	names := []string{"libmlx5.so.1", "libmlx5.so"}
	if strings.Contains(l.Name, "/") {
		names = append([]string{filepath.Join(filepath.Dir(l.Name), names[0])}, names...)
	}
	var whys []string
	for _, name := range names {
		err := ibv.LoadMLX5(l.Calls, name)
		if err == nil {
			return nil
		}
		whys = append(whys, err.Error())
	}
	return errors.New(strings.Join(whys, "; "))
}

// servedByMLX5 reports whether libmlx5 serves a card of a vendor.
func servedByMLX5(l *Library, vendor uint32, entry ibv.Object) bool {
	wanted := l.Knobs.Int(knob.IBDataDirect) != 0 || l.Knobs.Int(knob.IBOOORQ) != 0
	if !wanted || !mlx5Vendors[vendor] {
		return false
	}
	if l.mlx5Due {
		l.mlx5Due = false
		if err := l.loadMLX5(); err != nil {
			l.Log.Info(report.Init, "libmlx5 cannot be loaded, what its cards have beyond others stays unknown: %v", err)
		}
	}
	return l.MLX5Supported(entry) == 0
}

// findDirect looks for a card's data-direct function: a second PCI function
// through which it reaches GPU memory on a shorter way than through its own.
func findDirect(d *device, sysfs string) string {
	if d.Lib.Knobs.Int(knob.IBDataDirect) == 0 {
		return ""
	}
	path, errno := d.Lib.MLX5DirectPath(d.Context())
	switch errno {
	case 0:
	case syscall.ENODEV, syscall.ENOSYS: // no such card, or a library from before there were any
		return ""
	default:
		d.Lib.Log.Info(report.Init, "%v", fail.Call("mlx5dv_get_data_direct_sysfs_path", d.Name, errno, "the card is used without a data-direct path"))
		return ""
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(sysfs))) // .../class/infiniband/name
	real, err := filepath.EvalSymlinks(filepath.Join(root, path))
	if err != nil {
		d.Lib.Log.Info(report.Init, "%s has a data-direct path that is not in sysfs, and is used without: %v", d.Name, err)
		return ""
	}
	return real
}

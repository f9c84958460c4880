package verbs

import (
	"errors"
	"path/filepath"
	"strings"

	"weft/internal/report"
	"weft/transport/verbs/ibv"
)

// mlx5Vendors are the vendor numbers of cards that libmlx5 may serve.
var mlx5Vendors = map[uint32]bool{0x02c9: true, 0x15b3: true}

// loadMLX5 finds the libmlx5 that belongs to the libibverbs in use: the one
// beside it, if the user named a file, else the loader's.
func (p *Provider) loadMLX5() error {
	names := []string{"libmlx5.so.1", "libmlx5.so"}
	if strings.Contains(p.library, "/") {
		names = append([]string{filepath.Join(filepath.Dir(p.library), names[0])}, names...)
	}
	var whys []string
	for _, name := range names {
		err := ibv.LoadMLX5(p.lib, name)
		if err == nil {
			return nil
		}
		whys = append(whys, err.Error())
	}
	return errors.New(strings.Join(whys, "; "))
}

// mlx5 reports whether libmlx5 serves a card; the library is loaded for the first card that it may serve.
func (a *adapter) mlx5(device ibv.Object) bool {
	if !mlx5Vendors[a.attr.Vendor] {
		return false
	}
	if !a.p.mlx5Tried {
		a.p.mlx5Tried = true
		if err := a.p.loadMLX5(); err != nil {
			a.p.log.Info(report.Init, "libmlx5 cannot be loaded, what its cards have beyond others stays unknown: %v", err)
		}
	}
	return a.p.lib.MLX5Supported(device) == 0
}

package conform

import "weft/internal/host"

// windows are some of n parts: all, pieces that end inside parts, and one part alone.
func windows(n, per int64) []window {
	all := n * per
	return []window{{per, 0, all}, {per, 0, per / 2 / 8 * 8}, {per, per / 2 / 8 * 8, per*3/2/8*8 + 8}, {per, per, 2 * per}, {per, all - 8, all}}
}

var collWindowRules = []*Rule{
	{ID: "coll.gather", From: 8, Says: "an all-gather fills its parts with a window of all ranks' data, in one part or several; sendData is the first byte of the rank's own that the window has",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(3)
			for _, w := range windows(3, 4000) {
				for _, parts := range []int{1, 3} {
					g.gather(w, parts)
				}
			}
			g.gather(window{800_008, 0, 3 * 800_008}, 1)
		}},
	{ID: "coll.scatter", From: 8, Says: "a reduce-scatter reads a window of what is reduced from its parts, and writes what of the rank's own the window has",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(3)
			for _, w := range windows(3, 4000) {
				for _, parts := range []int{1, 3} {
					g.scatter(host.Float32, w, parts)
				}
			}
			g.scatter(host.Int8, window{800_008, 0, 3 * 800_008}, 1)
		}},
	{ID: "coll.window.wrong", From: 8, Care: true, Says: "a window that its parts do not fill is refused, and the comm goes on",
		Basis: basisWeft, Check: func(e *Env) {
			g := e.world(2)
			m := g.ranks[0]
			b := m.buf(4096)
			mh := m.mr(b)
			args := host.Args{"comm", m.comm, "n", 1, "data", b.addr, "mh", mh, "size", 1000, "perRank", 1000, "bytes", 2000}
			m.refused("iallgather", append(args, "send", b.addr, "smh", mh), "an all-gather of 2000 bytes into 1000")
			m.refused("ireducescatter", append(args, "recv", b.addr, "rmh", mh, "type", int(host.Int8)), "a reduce-scatter of 2000 bytes out of 1000")
			g.reduce(host.Float32, host.Sum, 100, false)
		}},
}

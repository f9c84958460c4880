package port

import (
	"testing"

	"weft/internal/fakeibv"
	"weft/transport/verbs/ibv"
)

func TestSpeeds(t *testing.T) {
	for _, c := range []struct {
		width, speed uint8
		ex           uint32
		want         int
	}{
		{2, 64, 0, 200000}, {2, 32, 0, 100000}, {1, 4, 0, 10000}, {2, 128, 0, 400000}, {2, 128, 256, 800000},
		{16, 64, 0, 100000}, {0, 0, 0, 400000}, {4, 8, 0, 80000},
		{1, 1, 0, 2500}, {1, 2, 0, 5000}, {1, 8, 0, 10000}, {1, 16, 0, 14000}, {1, 32, 0, 25000}, {1, 64, 0, 50000}, {1, 128, 0, 100000}, {1, 0, 256, 200000},
	} {
		if got := tableSpeed(&ibv.PortAttr{ActiveWidth: c.width, ActiveSpeed: c.speed, ActiveSpeedEx: c.ex}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	h := lan(t)
	card := fakeibv.RoCE("a", "10.0.0.1", 1)
	card.Ports[0].Speed = 4000
	for _, c := range []struct {
		env   map[string]string
		lacks []string
		want  int
	}{
		{nil, nil, 400000}, {map[string]string{"NCCL_IB_QUERY_PORT_SPEED": "0"}, nil, 10000}, {nil, []string{"ibv_query_port_speed"}, 10000},
	} {
		f := fakeibv.New(t, card)
		f.Lacking = c.lacks
		d, _ := used(t, f, h, c.env)
		if got := d.SpeedMbps; got != c.want {
			t.Errorf("%v: %d", c, got)
		}
	}
}

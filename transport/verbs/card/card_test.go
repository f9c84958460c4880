package card_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/fakeibv"
	"weft/internal/report"
	"weft/transport/verbs/card"
)

// What is known of an optional feature after some trials: no trial that failed for another reason counts, and what was found
// out is not forgotten.
func TestFeatureIsLearnt(t *testing.T) {
	for _, c := range []struct {
		name   string
		trials []syscall.Errno
		is     card.Support
		why    string
	}{
		{"not tried", nil, card.Unknown, ""},
		{"there", []syscall.Errno{0}, card.Yes, ""},
		{"not supported", []syscall.Errno{syscall.EOPNOTSUPP}, card.No, "ibv_set_ece returned operation not supported"},
		{"no room at the time", []syscall.Errno{syscall.ENOMEM}, card.Unknown, ""},
		{"no room at first", []syscall.Errno{syscall.ENOMEM, 0}, card.Yes, ""},
		{"there, and no room later", []syscall.Errno{0, syscall.ENOMEM}, card.Yes, ""},
		{"not supported, whatever comes", []syscall.Errno{syscall.EOPNOTSUPP, 0}, card.No, "ibv_set_ece returned operation not supported"},
	} {
		var f card.Feature
		for _, errno := range c.trials {
			f.Learn("ibv_set_ece", errno)
		}
		is, why := f.State()
		reason, refused := f.Refused()
		if is != c.is || why != c.why || refused != (c.is == card.No) || reason != c.why {
			t.Errorf("%s: %v, %q; refused %v, %q", c.name, is, why, refused, reason)
		}
	}
}

func TestOutOfOrderReceives(t *testing.T) {
	for _, c := range []struct {
		card  *card.Card
		line  string
		wrong string
	}{
		{card.NewAnyOrder(256, ""), "at most 256 per QP", ""},
		{card.NewAnyOrder(255, ""), "at most 255 per QP", "a QP takes at most 255 out-of-order receives, 256 are needed"},
		{card.NewAnyOrder(0, "libmlx5 does not serve the card"), "libmlx5 does not serve the card", "no QP for out-of-order receives: libmlx5 does not serve the card"},
	} {
		err := c.card.AnyOrder("mlx5_0", 256)
		if e := (*report.Error)(nil); c.card.DescribeOrder() != c.line || errors.As(err, &e) != (c.wrong != "") ||
			e != nil && (e.Cause != report.Usage || e.Dev != "mlx5_0" || !strings.Contains(e.Error(), c.wrong)) {
			t.Errorf("%q, %v; want %q, %q", c.card.DescribeOrder(), err, c.line, c.wrong)
		}
	}
}

// Only a call that lacked room is worth another when something was given up.
func TestLibrarySpares(t *testing.T) {
	for _, c := range []struct {
		errno        syscall.Errno
		spare, again bool
	}{
		{syscall.ENOMEM, true, true}, {syscall.ENOSPC, true, true}, {syscall.ENOMEM, false, false}, {syscall.EINVAL, true, false},
	} {
		asked := false
		l := card.Library{Spare: func() bool { asked = true; return c.spare }}
		if again := l.Spares(c.errno); again != c.again || c.errno == syscall.EINVAL && asked {
			t.Errorf("%v, with something to spare %v: %v, asked %v", c.errno, c.spare, again, asked)
		}
	}
	if (&card.Library{}).Spares(syscall.ENOMEM) {
		t.Error("a library without a pool gives something up")
	}
}

// Who takes hold of a card while its device is opened anew keeps the old one, and the new one is closed.
func TestCardThatIsHeldMeanwhileIsNotExchanged(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	c, log := f.Open(fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24")), nil)
	before := c.Context()
	err := c.Reopen(func(swap func()) {
		c.Hold()
		swap()
	})
	if err == nil || c.Context() != before || log.Count("INFO NET a: the card was reopened") != 0 {
		t.Errorf("error %v, log %q", err, log.Lines())
	}
	if len(f.Left()) != 1 {
		t.Errorf("two devices are open: %v", f.Left())
	}
	c.Release()
	c.Close()
	if left := f.Left(); left != nil {
		t.Errorf("left: %v", left)
	}
}

// A trial during which another fatal event comes has proved nothing.
func TestTrialThatMeetsAnEvent(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	c, log := f.Open(fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24")), nil)
	trials := 0
	var trial func() error
	trial = func() error {
		if trials++; trials == 1 {
			c.Fails(trial)
		}
		return nil
	}
	c.Fails(trial)
	for end := time.Now().Add(time.Minute); c.Down() != "" && time.Now().Before(end); time.Sleep(time.Millisecond) {
		c.Stir() // or seconds pass
	}
	c.EndTrials()
	if trials != 2 || c.Down() != "" || log.Count("INFO NET a works again") != 1 {
		t.Errorf("%d trials, down: %q, log %q", trials, c.Down(), log.Lines())
	}
	c.Close()
}

// What a library lacks is known of its cards before they are tried.
func TestPowersThatTheLibraryLacks(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	f.Lacking = []string{"ibv_set_ece", "ibv_reg_dmabuf_mr"}
	c, _ := f.Open(fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24")), nil)
	defer c.Close()
	for name, x := range map[string]struct {
		f    *card.Feature
		lack string
	}{"ECE": {&c.ECE, "ibv_set_ece"}, "DMA-BUF": {&c.DMABuf, "ibv_reg_dmabuf_mr"}, "relaxed ordering": {&c.Relaxed, ""}} {
		if why, refused := x.f.Refused(); refused != (x.lack != "") || !strings.HasSuffix(why, x.lack) {
			t.Errorf("%s: refused %v, %q", name, refused, why)
		}
	}
}

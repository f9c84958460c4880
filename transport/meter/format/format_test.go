package format

import "testing"

// Each time is in the bucket that begins at it or below, and before the next one.
func TestBucket(t *testing.T) {
	for b := range Buckets {
		if got := Bucket(Begin(b)); got != b {
			t.Errorf("%d ns, where bucket %d begins, are in %d", Begin(b), b, got)
		}
		if b > 0 && Bucket(Begin(b)-1) != b-1 {
			t.Errorf("%d ns, before bucket %d, are in %d", Begin(b)-1, b, Bucket(Begin(b)-1))
		}
		if b > 1 && float64(Begin(b))/float64(Begin(b-1)) > 1.126 {
			t.Errorf("bucket %d begins at %d, the one before at %d", b, Begin(b), Begin(b-1))
		}
	}
	if Bucket(0) != 0 || Bucket(^uint64(0)) != Buckets-1 {
		t.Errorf("the ends are in %d and %d", Bucket(0), Bucket(^uint64(0)))
	}
}

package collnet

import (
	"testing"
)

// caller is a link of which only its name is asked.
type caller struct{ Link }

func (caller) Peer() string { return "somebody" }

// A hello that says anything is an error, or gives the connection the one place that it names.
func FuzzHello(f *testing.F) {
	const ranks, tracks, chunk = 3, 2, 512 << 10
	hello := func(words ...uint64) (b []byte) {
		for _, w := range append(words, 0) {
			b = le.AppendUint64(b, w)
		}
		return b
	}
	f.Add(hello(helloMagic, helloVersion, ranks, 2, 1, tracks, chunk))
	f.Add(hello(helloMagic, helloVersion, ranks, 2, 1<<63, tracks, chunk)) // a track that is negative as an int
	f.Add(hello(helloMagic, helloVersion, ranks, 1<<63, 1, tracks, chunk))
	f.Add(hello(helloMagic, helloVersion, ranks, 1, 1, tracks, chunk)) // this rank itself
	f.Add(hello(helloMagic, helloVersion+1, ranks, 2, 1, tracks, chunk))
	f.Add(hello(helloMagic, helloVersion, ranks+1, 2, 1, tracks, chunk))
	f.Add(hello(helloMagic, helloVersion, ranks, 2, 1, tracks, chunk<<1))
	f.Add([]byte("GET / HTTP/1.0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &Comm{self: self{n: ranks, rank: 1}, ctx: &Context{Options: Options{Chunk: chunk}}}
		for range tracks {
			c.tracks = append(c.tracks, &track{receives: make([]Link, ranks)})
		}
		j := &joining{c: c, mem: scratch{bytes: make([]byte, slot)}}
		copy(j.mem.bytes, b)
		h := &hail{link: caller{}}
		err := j.meet(h, min(len(b), slot))
		placed := 0
		for _, t := range c.tracks {
			for r, l := range t.receives {
				if l != nil && r != c.rank {
					placed++
				}
			}
		}
		if (err == nil) != (placed == 1) || (err == nil) != (h.link == nil) {
			t.Errorf("%x: error %v, %d places, link %v", b, err, placed, h.link)
		}
		if again := (&hail{link: caller{}}); err == nil && j.meet(again, slot) == nil {
			t.Errorf("%x: the second connection has the place of the first", b)
		}
	})
}

package bundle

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// redactor replaces what is private, the same by the same, so that what belongs together stays together: two addresses of one subnet
// are two of another one. The key is of one bundle, and thrown away.
type redactor struct {
	key   [32]byte
	words []replaced // longest first
}

type replaced struct{ from, to string }

// newRedactor knows the names of the machine and of its user.
func newRedactor(hosts, users []string) (*redactor, error) {
	r := &redactor{}
	if _, err := rand.Read(r.key[:]); err != nil {
		return nil, fmt.Errorf("no random key for the bundle: %w", err)
	}
	r.name("host", hosts)
	r.name("user", users)
	slices.SortStableFunc(r.words, func(a, b replaced) int { return len(b.from) - len(a.from) })
	return r, nil
}

func (r *redactor) name(kind string, words []string) {
	n := 0
	for _, w := range words {
		if len(w) < 2 || w == "localhost" || w == "root" || slices.ContainsFunc(r.words, func(o replaced) bool { return o.from == w }) {
			continue
		}
		n++
		r.words = append(r.words, replaced{w, fmt.Sprintf("%s-%d", kind, n)})
	}
}

// Addresses of each form, the longer before what they begin with.
const (
	hex8 = `\b[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){7}\b`
	ipv6 = `(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})?::(?:[0-9a-fA-F]{1,4}(?::(?:\d+\.\d+\.\d+\.\d+|[0-9a-fA-F]{1,4})){0,6})?|\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){7}\b`
	mac  = `\b[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}\b`
	guid = `\b[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}\b`
	ipv4 = `\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`
)

// The parts of a text that may be private. A time of day is no address: IPv6 has two groups and "::", or eight groups.
var (
	secret = regexp.MustCompile(`(?i)\b([A-Z0-9_]*(?:TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PSK|API_?KEY|ACCESS_KEY|PRIVATE)[A-Z0-9_]*)([ \t]*=[ \t]*)("[^"]*"|'[^']*'|[^\s'",;]+)`)
	userin = regexp.MustCompile(`://[^/\s:@]+:[^/\s@]+@`)
	number = regexp.MustCompile(strings.Join([]string{hex8, ipv6, mac, guid, ipv4}, "|"))
	inet6  = regexp.MustCompile(`(?m)^[0-9a-f]{32}\b`)
)

// text is a text without what is private.
func (r *redactor) text(s string) string {
	s = secret.ReplaceAllStringFunc(s, func(found string) string {
		p := secret.FindStringSubmatch(found)
		return p[1] + p[2] + "secret-" + r.short(p[3])
	})
	s = userin.ReplaceAllString(s, "://user:secret@")
	for _, w := range r.words {
		s = replaceWord(s, w.from, w.to)
	}
	s = inet6.ReplaceAllStringFunc(s, r.plain6)
	return number.ReplaceAllStringFunc(s, r.number)
}

// number replaces an address of any form, in its form.
func (r *redactor) number(s string) string {
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil: // of hardware: the maker's part stays
		if strings.Contains(s, ".") {
			return s // a version
		}
		return r.hexDigits(s, 6)
	case len(s) == len("0000:0000:0000:0000:0000:0000:0000:0000"):
		return groups(r.addr(a))
	}
	return r.addr(a).String()
}

// route rewrites /proc/net/route, whose addresses are eight hexadecimal digits, the last byte first.
func (r *redactor) route(s string) string {
	return routed.ReplaceAllStringFunc(s, func(word string) string {
		b, err := hex.DecodeString(word)
		if err != nil || strings.HasPrefix(word, "FF") || strings.HasSuffix(word, "FF") {
			return word // a mask
		}
		slices.Reverse(b)
		out := r.addr(netip.AddrFrom4([4]byte(b))).As4()
		slices.Reverse(out[:])
		return strings.ToUpper(hex.EncodeToString(out[:]))
	})
}

var routed = regexp.MustCompile(`\b[0-9A-F]{8}\b`)

// replaceWord replaces a word that stands alone: node7, and not node70.
func replaceWord(s, from, to string) string {
	part := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
	}
	var b strings.Builder
	for {
		at := strings.Index(s, from)
		if at < 0 {
			b.WriteString(s)
			return b.String()
		}
		end := at + len(from)
		b.WriteString(s[:at])
		if at > 0 && part(s[at-1]) || end < len(s) && part(s[end]) {
			b.WriteString(from)
		} else {
			b.WriteString(to)
		}
		s = s[end:]
	}
}

func (r *redactor) short(of string) string { return hex.EncodeToString(r.mac([]byte(of)))[:8] }

func (r *redactor) mac(of []byte) []byte {
	h := hmac.New(sha256.New, r.key[:])
	h.Write(of)
	return h.Sum(nil)
}

// hexDigits replaces all but the first digits, which are the maker's.
func (r *redactor) hexDigits(s string, keep int) string {
	if strings.Trim(s, "0:") == "" {
		return s
	}
	digits := hex.EncodeToString(r.mac([]byte(strings.ToLower(s))))
	out, n := []byte(s), 0
	for i, c := range out {
		if c == ':' {
			continue
		}
		if n++; n > keep {
			out[i] = digits[n]
		}
	}
	return string(out)
}

// groups is an address as sysfs writes a GID: eight groups of four digits.
func groups(a netip.Addr) string {
	b := a.As16()
	var all []string
	for i := 0; i < 16; i += 2 {
		all = append(all, hex.EncodeToString(b[i:i+2]))
	}
	return strings.Join(all, ":")
}

func (r *redactor) plain6(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		return s
	}
	out := r.addr(netip.AddrFrom16([16]byte(b))).As16()
	return hex.EncodeToString(out[:])
}

// addr replaces an address bit by bit, each by the bits before it: who shares a subnet shares one afterwards. What an address is for
// (private, link-local, loopback, multicast, a mask) it stays.
func (r *redactor) addr(a netip.Addr) netip.Addr {
	if a.Is4In6() {
		return netip.AddrFrom16(r.addr(a.Unmap()).As16())
	}
	bytes := a.AsSlice()
	if a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.Is4() && (bytes[0] == 255 || bytes[0] == 0) {
		return a
	}
	keep := kept(a)
	out := slices.Clone(bytes)
	for bit := keep; bit < len(bytes)*8; bit++ {
		prefix, err := a.Prefix(bit)
		if err != nil {
			return a
		}
		in, _ := prefix.MarshalBinary()
		if r.mac(in)[0]&1 != 0 {
			out[bit/8] ^= 0x80 >> (bit % 8)
		}
	}
	b, _ := netip.AddrFromSlice(out)
	return b
}

// kept is how many bits of an address say what it is for.
func kept(a netip.Addr) int {
	for _, c := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10", "fe80::/64"} {
		if p := netip.MustParsePrefix(c); p.Contains(a) {
			return p.Bits()
		}
	}
	if a.Is4() {
		return 8
	}
	return 16
}

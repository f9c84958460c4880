package host

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Ptr is an address or opaque value in the host process.
type Ptr uint64

// Args are a command's key=value pairs, in order.
type Args []any

func (a Args) encode(b *strings.Builder) {
	if len(a)%2 != 0 {
		panic("host: Args needs pairs")
	}
	for i := 0; i < len(a); i += 2 {
		b.WriteByte(' ')
		b.WriteString(a[i].(string))
		b.WriteByte('=')
		b.WriteString(escape(text(a[i+1])))
	}
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case Ptr:
		return fmt.Sprintf("%#x", uint64(v))
	case bool:
		if v {
			return "1"
		}
		return "0"
	case []Ptr:
		return join(v)
	case []int:
		return join(v)
	case []int64:
		return join(v)
	case time.Duration:
		return strconv.FormatInt(v.Milliseconds(), 10)
	}
	return fmt.Sprint(v)
}

func join[T any](list []T) string {
	s := make([]string, len(list))
	for i, v := range list {
		s[i] = text(v)
	}
	return strings.Join(s, ",")
}

func escape(s string) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '%' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '%' {
			fmt.Fprintf(&b, "%%%02X", s[i])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Reply is what a command replied.
type Reply struct {
	Call   string
	Took   time.Duration // inside the plugin's function, for slot commands
	Values map[string]string
}

// RC is the plugin's result, Success when the command has none.
func (r *Reply) RC() Result { return Result(r.Int("rc")) }

// Str is a value as text.
func (r *Reply) Str(key string) string { return r.Values[key] }

// Has tells whether the reply carries key.
func (r *Reply) Has(key string) bool { _, ok := r.Values[key]; return ok }

// Int is a value as number, 0 when absent.
func (r *Reply) Int(key string) int64 {
	n, _ := strconv.ParseInt(r.Values[key], 0, 64)
	return n
}

// Ptr is a value as address.
func (r *Reply) Ptr(key string) Ptr {
	n, _ := strconv.ParseUint(r.Values[key], 0, 64)
	return Ptr(n)
}

// Float is a value as floating-point number.
func (r *Reply) Float(key string) float64 {
	f, _ := strconv.ParseFloat(r.Values[key], 64)
	return f
}

// Ints is a value as list of numbers.
func (r *Reply) Ints(key string) []int64 {
	s := r.Values[key]
	if s == "" {
		return nil
	}
	parts := strings.Split(s, ",")
	out := make([]int64, len(parts))
	for i, p := range parts {
		out[i], _ = strconv.ParseInt(p, 0, 64)
	}
	return out
}

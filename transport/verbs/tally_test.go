package verbs

import (
	"fmt"
	"maps"
	"reflect"
	"sync"
	"syscall"

	"weft/transport/verbs/ibv"
)

// tally counts the calls of a table, and the objects that they made and destroyed.
type tally struct {
	mu   sync.Mutex
	n    map[string]int
	live map[string]int
}

var makers = map[string]string{"GetDeviceList": "list", "OpenDevice": "context", "AllocPD": "pd", "CreateCQ": "cq", "CreateQP": "qp",
	"RegMR": "mr", "RegMRIOVA2": "mr", "RegDMABufMR": "mr"}
var enders = map[string]string{"FreeDeviceList": "list", "CloseDevice": "context", "DeallocPD": "pd", "DestroyCQ": "cq", "DestroyQP": "qp", "DeregMR": "mr"}

// count puts a tally in front of a table's functions.
func count(c *ibv.Calls) (*ibv.Calls, *tally) {
	copied, t := *c, &tally{n: map[string]int{}, live: map[string]int{}}
	v := reflect.ValueOf(&copied).Elem()
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		if field.Kind() != reflect.Func {
			continue
		}
		plain := reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
		inner := reflect.ValueOf(plain.Interface())
		plain.Set(reflect.MakeFunc(field.Type(), func(args []reflect.Value) []reflect.Value {
			out := inner.Call(args)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.n[name]++
			if len(out) > 0 {
				if errno, _ := out[len(out)-1].Interface().(syscall.Errno); errno != 0 {
					return out
				}
			}
			t.live[makers[name]]++
			t.live[enders[name]]--
			return out
		}))
	}
	return &copied, t
}

func (t *tally) calls() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.n)
}

func (t *tally) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.n)
	clear(t.live)
}

// left names the kinds of which more were made than destroyed.
func (t *tally) left() (text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for kind, n := range t.live {
		if kind != "" && n != 0 {
			text += fmt.Sprintf("%d %s ", n, kind)
		}
	}
	return text
}

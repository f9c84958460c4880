package collnet

import (
	"errors"
	"reflect"
	"testing"

	"weft/abi"
	"weft/internal/report"
)

func TestInitSucceedsAndOffersNothing(t *testing.T) {
	ctx := uintptr(5)
	ndev := int32(7)
	var c abi.CollNet = Decline{}
	for _, err := range []error{
		c.Init(&abi.CollNetInitArgs{Ctx: &ctx}), c.Init(&abi.CollNetInitArgs{}),
		c.Devices(&abi.CollNetDevicesArgs{Ndev: &ndev}),
		c.Finalize(&abi.CollNetFinalizeArgs{Ctx: ctx}), c.Finalize(&abi.CollNetFinalizeArgs{}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if ndev != 0 || ctx != 0 {
		t.Errorf("%d devices, context %d", ndev, ctx)
	}
	supported := int32(1)
	if err := c.ReduceSupport(&abi.CollNetReduceSupportArgs{Supported: &supported}); err != nil || supported != 0 {
		t.Errorf("reduceSupport: %d, %v", supported, err)
	}
}

// Every function, with handles that are zero: no handle is given out, and only what refuses nothing succeeds. (The shims let
// no pointer be NULL.)
func TestEveryFunctionIsSafe(t *testing.T) {
	free := map[string]bool{"Init": true, "Finalize": true, "Devices": true, "ReduceSupport": true}
	v := reflect.ValueOf(Decline{})
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		args := reflect.New(m.Type().In(0).Elem())
		var outs []*uintptr
		for j := range args.Elem().NumField() {
			f := args.Elem().Field(j)
			if f.Kind() == reflect.Pointer {
				f.Set(reflect.New(f.Type().Elem()))
				if p, ok := f.Interface().(*uintptr); ok {
					*p = 77
					outs = append(outs, p)
				}
			}
		}
		err, _ := m.Call([]reflect.Value{args})[0].Interface().(error)
		if (err != nil) == free[name] {
			t.Errorf("%s: error %v", name, err)
		}
		if err != nil && report.CauseOf(err) != report.Misuse && !errors.Is(err, abi.ErrUnsupported) { // what a newer header adds is unsupported
			t.Errorf("%s: cause %v", name, report.CauseOf(err))
		}
		for _, p := range outs {
			if *p != 0 {
				t.Errorf("%s leaves an out parameter at %d", name, *p)
			}
		}
	}
}

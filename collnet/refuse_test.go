package collnet

import (
	"reflect"
	"testing"

	"weft/abi"
	"weft/transport/rdma"
)

func TestInitSucceedsAndOffersNothing(t *testing.T) {
	ctx := uintptr(5)
	ndev := int32(7)
	var c abi.CollNet = Refuse{}
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

// Every function, with all arguments zero and with every out pointer set:
// no crash, no handle given out, and only what refuses nothing succeeds.
func TestEveryFunctionIsSafe(t *testing.T) {
	free := map[string]bool{"Init": true, "Finalize": true, "Devices": true, "ReduceSupport": true}
	v := reflect.ValueOf(Refuse{})
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		for _, filled := range []bool{false, true} {
			args := reflect.New(m.Type().In(0).Elem())
			var outs []*uintptr
			if filled {
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
			}
			err, _ := m.Call([]reflect.Value{args})[0].Interface().(error)
			if wantErr := !free[name] || !filled && (name == "Devices" || name == "ReduceSupport"); (err != nil) != wantErr {
				t.Errorf("%s(filled %v): error %v", name, filled, err)
			}
			if err != nil && rdma.CauseOf(err) != rdma.Misuse {
				t.Errorf("%s: cause %v", name, rdma.CauseOf(err))
			}
			for _, p := range outs {
				if *p != 0 {
					t.Errorf("%s leaves an out parameter at %d", name, *p)
				}
			}
		}
	}
}

package parse

import (
	"testing"

	"weft/gen/model"
	"weft/headers"
)

func TestNCCL(t *testing.T) {
	u, err := NCCL(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, tab := range u.Tables {
		t.Log(tab.Family, tab.Version, tab.Symbol, tab.Header, tab.Record.Name, tab.Record.Size, len(tab.Record.Fields))
	}
	for _, m := range u.Macros {
		t.Log(*m)
	}
	for _, e := range u.Enums {
		t.Log(e.Name, e.Tag, e.Signed, len(e.Values), e.Pos, e.Doc)
	}
	for _, e := range u.Typedefs {
		t.Log(e.Name, e.Type, e.Type.Kind, e.Pos)
	}
	n := u.Newest(model.Net)
	for _, f := range n.Record.Fields {
		t.Log(f.Type.Declare(f.Name), f.Offset, f.Doc, f.Pos)
	}
	for _, f := range u.Record("ncclNetProperties_v12_t").Fields {
		t.Log(f.Type.Declare(f.Name), f.Offset, f.Doc, f.Pos)
	}
}

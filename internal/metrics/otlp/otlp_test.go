package otlp_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"weft/internal/metrics/otlp"
)

// TestSend sends a metric of each type, and has a collector read them.
func TestSend(t *testing.T) {
	var got []*collector.ExportMetricsServiceRequest
	status := 200
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Error(err)
				return
			}
		}
		text, err := io.ReadAll(body)
		m := &collector.ExportMetricsServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(text, m)
		}
		if err != nil || r.URL.Path != "/v1/metrics" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s, %s: %v", r.URL, r.Header.Get("Content-Type"), err)
		}
		got = append(got, m)
		w.WriteHeader(status)
	}))
	defer s.Close()
	r := prometheus.NewPedanticRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "x_bytes_total", ConstLabels: prometheus.Labels{"host": "a", "rank": ""}})
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "x_open"})
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x_seconds", Buckets: []float64{1, 2}})
	r.MustRegister(c, g, h)
	c.Add(5)
	g.Set(6)
	for _, v := range []float64{0.5, 1.5, 1.5, 9} {
		h.Observe(v)
	}

	to, err := otlp.New(t.Context(), s.URL, "1.2")
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Send(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	scope := got[0].ResourceMetrics[0].ScopeMetrics[0]
	if scope.Scope.Name != "weft" || scope.Scope.Version != "1.2" || len(scope.Metrics) != 3 {
		t.Fatalf("%v", scope)
	}
	bytes, open, seconds := scope.Metrics[0], scope.Metrics[1], scope.Metrics[2]
	if p := bytes.GetSum().DataPoints[0]; bytes.Unit != "By" || !bytes.GetSum().IsMonotonic || p.GetAsDouble() != 5 || len(p.Attributes) != 1 {
		t.Errorf("%v", bytes)
	}
	if open.Unit != "1" || open.GetGauge().DataPoints[0].GetAsDouble() != 6 {
		t.Errorf("%v", open)
	}
	if p := seconds.GetHistogram().DataPoints[0]; seconds.Unit != "s" || p.Count != 4 || p.GetSum() != 12.5 || len(p.ExplicitBounds) != 2 || p.BucketCounts[0] != 1 || p.BucketCounts[1] != 2 || p.BucketCounts[2] != 1 {
		t.Errorf("%v", seconds)
	}

	status = http.StatusBadRequest
	if err := to.Send(t.Context(), r); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("a collector that refuses: %v", err)
	}
	if err := to.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"", "localhost:4318", "ftp://x", "http://", "http://a b"} {
		if _, err := otlp.New(t.Context(), bad, ""); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

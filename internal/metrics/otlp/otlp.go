// Package otlp sends to an OpenTelemetry collector what package prom gives to
// Prometheus, by HTTP and protobuf.
package otlp

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Sender sends to one collector.
type Sender struct {
	exporter *otlpmetrichttp.Exporter
	version  string
	since    time.Time
}

// New makes one; nothing is sent yet. A URL without a path has that of the standard,
// /v1/metrics. Headers and certificates are those of OTEL_EXPORTER_OTLP_*.
func New(ctx context.Context, to, version string) (*Sender, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL of a collector: http://HOST:4318 is the usual one", to)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/metrics"
	}
	e, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, err
	}
	return &Sender{exporter: e, version: version, since: time.Now()}, nil
}

// Send sends what is there now, with some tries.
func (s *Sender) Send(ctx context.Context, g prometheus.Gatherer) error {
	families, err := g.Gather()
	if err != nil {
		return err
	}
	all := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: "weft", Version: s.version}}
	now := time.Now()
	for _, f := range families {
		all.Metrics = append(all.Metrics, metricdata.Metrics{Name: *f.Name, Description: f.GetHelp(), Unit: unit(f.GetName()), Data: s.data(f, now)})
	}
	return s.exporter.Export(ctx, &metricdata.ResourceMetrics{
		Resource:     resource.NewSchemaless(attribute.String("service.name", "weft")),
		ScopeMetrics: []metricdata.ScopeMetrics{all},
	})
}

// Close ends the connections.
func (s *Sender) Close(ctx context.Context) error { return s.exporter.Shutdown(ctx) }

// unit is that of UCUM which a name of Prometheus's has.
func unit(name string) string {
	switch name = strings.TrimSuffix(name, "_total"); {
	case strings.HasSuffix(name, "_seconds"):
		return "s"
	case strings.HasSuffix(name, "_bytes"):
		return "By"
	}
	return "1"
}

// data is a family's.
func (s *Sender) data(f *dto.MetricFamily, now time.Time) metricdata.Aggregation {
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		sum := metricdata.Sum[float64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
		for _, m := range f.Metric {
			sum.DataPoints = append(sum.DataPoints, metricdata.DataPoint[float64]{Attributes: labels(m), StartTime: s.since, Time: now, Value: m.Counter.GetValue()})
		}
		return sum
	case dto.MetricType_HISTOGRAM:
		h := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		for _, m := range f.Metric {
			h.DataPoints = append(h.DataPoints, s.histogram(m, now))
		}
		return h
	default:
		var g metricdata.Gauge[float64]
		for _, m := range f.Metric {
			g.DataPoints = append(g.DataPoints, metricdata.DataPoint[float64]{Attributes: labels(m), Time: now, Value: m.Gauge.GetValue()})
		}
		return g
	}
}

// histogram has the messages of each bucket, where Prometheus has those of all up to it.
func (s *Sender) histogram(m *dto.Metric, now time.Time) metricdata.HistogramDataPoint[float64] {
	p := metricdata.HistogramDataPoint[float64]{
		Attributes: labels(m), StartTime: s.since, Time: now, Count: m.Histogram.GetSampleCount(), Sum: m.Histogram.GetSampleSum(),
	}
	below := uint64(0)
	for _, b := range m.Histogram.Bucket {
		p.Bounds = append(p.Bounds, b.GetUpperBound())
		p.BucketCounts = append(p.BucketCounts, b.GetCumulativeCount()-below)
		below = b.GetCumulativeCount()
	}
	p.BucketCounts = append(p.BucketCounts, p.Count-below)
	return p
}

func labels(m *dto.Metric) attribute.Set {
	var all []attribute.KeyValue
	for _, l := range m.Label {
		if l.GetValue() != "" {
			all = append(all, attribute.String(l.GetName(), l.GetValue()))
		}
	}
	return attribute.NewSet(all...)
}

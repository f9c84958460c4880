package processor

// question is what is asked of a trace, and what the model says of it.
type question struct {
	name  string
	query string
	want  func(e *expected) []string
	own   bool // is asked of Perfetto's format only: of Chrome's the reader leaves it out
}

// spans are the slices, each with its process and the names of its track and of those above it. Perfetto's tracks belong to
// processes, those of Chrome's format to threads, whose names have all of it.
const spans = `
with recursive path(id, text) as (
  select id, name from track where parent_id is null
  union all
  select t.id, path.text || ' / ' || t.name from track t join path on t.parent_id = path.id
),
span as (
  select s.*, p.name as process, coalesce(th.name, path.text) as track
  from slice s
  left join path on path.id = s.track_id
  left join process_track pt on pt.id = s.track_id
  left join thread_track tt on tt.id = s.track_id
  left join thread th on th.utid = tt.utid
  join process p on p.upid = coalesce(pt.upid, th.upid)
)
`

var questions = []question{
	{
		name: "what the reader did not take",
		query: `select printf('%s: %d', name, value) as row from stats
			where (severity in ('error', 'data_loss') or name glob 'flow_*') and value > 0`,
		want: func(*expected) []string { return nil },
	},
	{
		name: "processes in the order of ranks",
		query: `select printf('%d. %s', place - min(place) over () + 1, name) as row
			from (select name, extract_arg(arg_set_id, 'process_sort_index_hint') as place from process where name is not null)`,
		want: (*expected).processes,
	},
	{
		name: "what processes have lost",
		query: `select printf('%s: %s', p.name, a.string_value) as row
			from process p join args a using (arg_set_id) where a.flat_key = 'chrome.process_label'`,
		want: (*expected).losses,
		own:  true,
	},
	{
		name: "slices by process and kind",
		query: spans + `select printf('%s, %s: %d, from %d, take %d', process, kind, count(*), sum(ts), sum(dur)) as row
			from (select *, iif(category = 'message', name, category) as kind from span where category != 'state')
			where kind not in ('waits for the sender', 'data') group by process, kind`,
		want: (*expected).kinds,
	},
	{
		name: "arrows from sends to receives",
		query: spans + `select printf('%s %d+%d -> %s %d+%d', o.process, o.ts, o.dur, r.process, r.ts, r.dur) as row
			from flow f join span o on o.id = f.slice_out join span i on i.id = f.slice_in join span r on r.id = i.parent_id`,
		want: (*expected).arrows,
	},
	{
		name: "what collectives tell",
		query: spans + `select printf('%s %d: %s, %d bytes, %s %s', process, ts, name,
			coalesce(extract_arg(arg_set_id, 'debug.bytes'), extract_arg(arg_set_id, 'args.bytes')),
			coalesce(extract_arg(arg_set_id, 'debug.algorithm'), extract_arg(arg_set_id, 'args.algorithm')),
			coalesce(extract_arg(arg_set_id, 'debug.protocol'), extract_arg(arg_set_id, 'args.protocol'))) as row
			from span where category = 'Coll'`,
		want: (*expected).collectives,
	},
	{
		name: "slices that have no end, or are not within the one around them",
		query: spans + `select printf('%s: %s, %d+%d', s.process, s.name, s.ts, s.dur) as row
			from span s left join slice u on u.id = s.parent_id
			where s.dur < 0 or s.ts < u.ts or s.ts + s.dur > u.ts + u.dur or s.depth > 0 and u.id is null`,
		want: func(*expected) []string { return nil },
	},
	{
		name: "slices by track and depth",
		query: spans + `select printf('%s: %s, %d deep: %d', process, track, depth, count(*)) as row
			from span group by process, track, depth`,
		want: (*expected).tracks,
	},
}

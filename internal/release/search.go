package release

import "strings"

const longest = 254 // characters of a plugin's name

func (r *Release) prefix(kind string) string {
	if r.RCCL {
		return "librccl-" + kind
	}
	return "libnccl-" + kind
}

// NetNames are the names given to dlopen for the net plugins, a list for each
// plugin in order of preference. value is NCCL_NET_PLUGIN, nil when it is not set.
func (r *Release) NetNames(value *string) [][]string {
	pre := r.prefix("net")
	plain := [][]string{{pre + ".so"}}
	switch {
	case r.Code < 21100 || value == nil:
		return plain
	case r.Code < 22100:
		if *value == "" {
			return plain
		}
		return [][]string{{pre + "-" + *value + ".so"}}
	case r.Code < 22700:
		if *value == "" {
			return plain
		}
		return [][]string{{*value, pre + "-" + *value + ".so"}}
	}
	if r.Code >= 22800 && strings.EqualFold(*value, "none") {
		return nil
	}
	var out [][]string
	for _, name := range strings.FieldsFunc(*value, func(c rune) bool { return c == ',' }) {
		if len(out) == r.plugins() {
			break
		}
		if len(name) <= longest {
			out = append(out, r.names(pre, name))
		}
	}
	return out
}

// plugins is how many external plugins a list may name; two places are NCCL's own.
func (r *Release) plugins() int { return int(r.Limits["NCCL_NET_MAX_PLUGINS"]) - 2 }

// names is how releases from 2.27 on read one name.
func (r *Release) names(pre, name string) []string {
	file := strings.HasPrefix(name, "lib") && strings.HasSuffix(name, ".so")
	if r.Code < 22705 {
		if file && len(name) >= len("libX.so") {
			return []string{name}
		}
		return []string{pre + "-" + name + ".so"}
	}
	if file || strings.Contains(name, "/") {
		return []string{name}
	}
	return []string{name, pre + "-" + name + ".so"}
}

// ProfilerNames are the names given to dlopen for the profiler, before the net
// library is asked. value is NCCL_PROFILER_PLUGIN, nil when it is not set.
func (r *Release) ProfilerNames(value *string) []string {
	pre := r.prefix("profiler")
	if r.Code >= 22907 { // RCCL took NCCL's name for it with this base
		pre = "libnccl-profiler"
	}
	switch {
	case !r.Profiles():
		return nil
	case value == nil || *value == "":
		return []string{pre + ".so"}
	case r.Code >= 22800 && strings.EqualFold(*value, "none"):
		return nil
	case r.Code < 22600:
		return []string{*value}
	case r.Code < 22700:
		return []string{*value, pre + "-" + *value + ".so"}
	}
	return r.names(pre, *value)
}

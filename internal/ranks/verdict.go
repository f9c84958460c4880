package ranks

import (
	"fmt"
	"slices"
	"strings"
)

// verdict is what the failures of all ranks come to: whose fault it likely is, and each cause once. They stand in
// the order in which they were heard of.
func verdict(size int, all []*Failure) string {
	if len(all) == 0 {
		return "no rank says why"
	}
	worst := slices.MinFunc(all, func(a, b *Failure) int { return int(a.Kind) - int(b.Kind) }).Kind
	var causes []*Failure
	for _, f := range all {
		if f.Kind == worst {
			causes = append(causes, f)
		}
	}
	var b strings.Builder
	b.WriteString(headline(size, causes, all))
	said := map[string]bool{}
	for _, f := range causes {
		if !said[f.Text] { // ranks that fail alike fail for one reason
			fmt.Fprintf(&b, "\n  %s: %s", f.where(), f.Text)
		}
		said[f.Text] = true
	}
	if worst == Gone || worst == Died { // what others saw of it may tell why
		for _, f := range all {
			if f.Kind == Own && !said[f.Text] {
				fmt.Fprintf(&b, "\n  %s: %s", f.where(), f.Text)
				said[f.Text] = true
			}
		}
	}
	if rest := follow(size, causes, all); rest != "" {
		fmt.Fprintf(&b, "\n  %s ended with that", rest)
	}
	return b.String()
}

func (f *Failure) where() string {
	s := fmt.Sprintf("rank %d", f.Rank)
	if f.Host != "" {
		s += " on " + f.Host
	}
	if f.Doing != "" {
		s += ", " + f.Doing
	}
	return s
}

// follow names the ranks that only came down with the others.
func follow(size int, causes, all []*Failure) string {
	rest := func(r int) bool {
		return !slices.ContainsFunc(causes, func(f *Failure) bool { return f.Rank == r }) &&
			slices.ContainsFunc(all, func(f *Failure) bool { return f.Rank == r })
	}
	if !slices.ContainsFunc(all, func(f *Failure) bool { return rest(f.Rank) }) {
		return ""
	}
	return list(size, rest)
}

func headline(size int, causes, all []*Failure) string {
	first := causes[0]
	switch first.Kind {
	case Stopped:
		return "the run was stopped; every rank has ended"
	case Died:
		return fmt.Sprintf("look at %s: a process that runs the plugin ended there", places(causes))
	case Gone:
		return fmt.Sprintf("look at %s: it is not heard of any more, so that its process or machine ended, or the network to it", places(causes))
	case Own:
		return fmt.Sprintf("look at %s", places(causes))
	case Link, Stuck:
		return suspect(size, causes, all)
	}
	return "every rank ended because of another"
}

// places names ranks and their machines, a machine once.
func places(fs []*Failure) string {
	var hosts []string
	at := map[string][]string{}
	for _, f := range fs {
		if at[f.Host] == nil {
			hosts = append(hosts, f.Host)
		}
		at[f.Host] = append(at[f.Host], fmt.Sprint(f.Rank))
	}
	var out []string
	for _, h := range hosts {
		s := "rank"
		if len(at[h]) > 1 {
			s = "ranks"
		}
		s += " " + strings.Join(at[h], ", ")
		if h != "" {
			s += " on " + h
		}
		out = append(out, s)
	}
	return strings.Join(out, " and ")
}

// suspect finds what all links that failed have in common: one cable, one machine, or a setting of all.
func suspect(size int, causes, all []*Failure) string {
	hosts := map[int]string{}
	for _, f := range all {
		hosts[f.Rank] = f.Host
	}
	place := func(r int) string {
		if hosts[r] == "" {
			return fmt.Sprintf("rank %d", r)
		}
		return fmt.Sprintf("rank %d on %s", r, hosts[r])
	}
	type link struct{ a, b int }
	var links []link
	for _, f := range causes {
		for _, p := range f.Peers {
			if l := (link{min(f.Rank, p), max(f.Rank, p)}); !slices.Contains(links, l) {
				links = append(links, l)
			}
		}
	}
	switch len(links) {
	case 0:
		return fmt.Sprintf("%s did not go on, and none of them says why", places(causes))
	case 1:
		return fmt.Sprintf("look at what lies between %s and %s: their interfaces and cable, a firewall, NCCL_SOCKET_IFNAME and NCCL_IB_HCA of both", place(links[0].a), place(links[0].b))
	}
	var common []int // ranks at one end of every link
	for r := range size {
		if !slices.ContainsFunc(links, func(l link) bool { return l.a != r && l.b != r }) {
			common = append(common, r)
		}
	}
	if len(common) == 1 {
		return fmt.Sprintf("look at %s: all %d links that failed end there; its interface, cable, firewall, NCCL_SOCKET_IFNAME and NCCL_IB_HCA", place(common[0]), len(links))
	}
	return fmt.Sprintf("look at what all machines share, for %d links between %s failed: the switch, a firewall, settings such as NCCL_SOCKET_IFNAME, NCCL_IB_HCA, NCCL_IB_GID_INDEX",
		len(links), list(size, func(r int) bool { return slices.ContainsFunc(links, func(l link) bool { return l.a == r || l.b == r }) }))
}

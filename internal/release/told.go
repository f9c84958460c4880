package release

// Behaviour is something that some releases do to a plugin and others do not.
type Behaviour struct {
	Says string
	Does func(r *Release) bool
}

// Behaviours are all of them, in words for people.
var Behaviours = []Behaviour{
	{"one thread connects all and then accepts, and uses the comm without a look whether it is there", (*Release).BlockingConnect},
	{"receives of several channels that share a comm are posted together", (*Release).Grouped},
	{"NCCL_NET chooses among nets by name", (*Release).NameFilter},
	{"a net whose device 0 has an unknown device type is not used", (*Release).DeviceCheck},
	{"the library is closed when its last communicator ends", (*Release).Unloads},
	{"the name of a library that was closed is forgotten, and the next communicator asks for the default one", (*Release).ForgetsName},
	{"the end of any communicator closes each plugin's library that none uses", (*Release).UnloadsOthers},
	{"a context of collNet that is not NULL is finalized, also where collNet has no devices", (*Release).TrustsCollContext},
	{"when a library was closed and is opened again, init is not called again", (*Release).ForgetsInit},
	{"init and finalize are called once for each communicator", (*Release).Contexts},
	{"devices is called after every init", (*Release).DevicesEachTime},
	{"ports of a card are made one device, by makeVDevice", (*Release).Fuses},
	{"how many devices there are is remembered when the library is closed", (*Release).RemembersDevices},
	{"finalize is called though init has failed", (*Release).FinalizesFailedInit},
	{"a split communicator with shared resources has its parent's context", (*Release).SharesContext},
	{"setNetAttr is called before connect and accept", (*Release).Attributes},
	{"the sender of a registered buffer offers all that is left of it, and goes on behind what was taken", (*Release).SendsWhole},
	{"irecv enters with *request = 1 where nobody waits for the data", (*Release).OptionalReceives},
	{"profilers are loaded", (*Release).Profiles},
	{"a profiler is looked for in the net's library", (*Release).ProfilerInNet},
	{"a tuner is looked for in the net's library too", (*Release).Tunes},
	{"the end of a tuner closes the net's library in which it was found, whoever uses that", (*Release).TunerBorrows},
	{"isend and irecv pass a profiler's handles", (*Release).ProfilerHandles},
}

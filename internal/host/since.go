package host

// The first net tables whose hosts do things in another way than those before.
const (
	SinceGroups      = 5  // receives come in groups with tags, handles have 128 bytes, connect and accept return at once
	SinceRemoteError = 6  // only releases that know ncclRemoteError look for it
	SinceDeviceCode  = 7  // a device may be one that kernels use themselves
	SinceWideRegMr   = 8  // the size of regMr is a size_t; a comm carries 32 receives at once
	SinceVDevices    = 9  // makeVDevice; *request of an irecv comes in as 0 or 1
	SinceNetEvents   = 10 // init brings the profiler's callback
	SinceContexts    = 11 // init makes a context, once per communicator, and finalize ends it
)

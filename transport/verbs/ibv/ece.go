package ibv

// ECE is struct ibv_ece: enhancements of a vendor.
type ECE struct {
	Vendor, Options, CompMask uint32
}

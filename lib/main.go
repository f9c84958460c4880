// Command lib is the library libnccl-net-weft.so: everything in it comes with
// one import. internal/link knows its flags.
package main

import _ "weft/compat"

func main() {}
